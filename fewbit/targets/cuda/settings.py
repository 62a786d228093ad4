"""What a compilation for a GPU must know beside the program: generation, precision, and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from fewbit.errors import ShapeError, UsageError
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.table import Entry, Table
from fewbit.program.signature import Signature, TensorSpec
from fewbit.targets.cuda.layer import Precision

Shape = tuple[int, ...]


@dataclass(frozen=True)
class GpuSettings:
    """A GPU has a plan for one size of each input."""

    signature: Signature
    arch: Arch
    precision: Precision = "f32"
    sizes: Sequence[Shape] | None = None
    """The shapes of inputs as they were asked for; open sizes are 1 without it."""
    tuned: Table = field(default_factory=dict[str, dict[str, list[Entry]]])
    """Settings of kernels that a search found, which come before those of the package."""
    inputs: tuple[Shape, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", fixed_shapes(self.signature.inputs, self.sizes))

    @property
    def open_sizes(self) -> list[int]:
        """What was given where the program leaves a size open."""
        return [
            size
            for spec, shape in zip(self.signature.inputs, self.inputs, strict=True)
            for size, known in zip(shape, spec.shape or (), strict=True)
            if known is None
        ]

    @property
    def open_size(self) -> int:
        """The product of all open sizes."""
        return prod(self.open_sizes)


def element_of(spec: TensorSpec) -> str:
    """Return the type of an input's or output's elements in memory."""
    return "i8" if spec.element.startswith("!mico") else spec.element.lstrip("su")


def fixed_shapes(inputs: Sequence[TensorSpec], sizes: Sequence[Shape] | None) -> tuple[Shape, ...]:
    """Return a shape for each input; sizes that the program leaves dynamic are the given ones."""
    if sizes is not None and len(sizes) != len(inputs):
        raise UsageError(f"the program has {len(inputs)} inputs, and {len(sizes)} sizes were given")
    shapes: list[Shape] = []
    for i, spec in enumerate(inputs):
        known = spec.shape or ()
        given = tuple(1 if d is None else d for d in known) if sizes is None else tuple(sizes[i])
        fits = len(given) == len(known) and all(
            d in (None, size) for d, size in zip(known, given, strict=True)
        )
        if not fits:
            raise ShapeError(f"the size {'x'.join(map(str, given))} does not fit input {spec}")
        shapes.append(given)
    return tuple(shapes)
