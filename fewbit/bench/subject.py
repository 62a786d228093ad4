"""What is measured: a model by its name, with inputs of fixed sizes.

All sizes are known when a program is compiled for a benchmark, as they are for other tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.bench.case import Array
from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.frontends import Shapes
from fewbit.program.program import Program

SAMPLES = 16
"""How many random inputs other tools calibrate with, where no data is given."""
OUR_SAMPLES = 2
"""With how many fewbit does: its interpreter is slow, and times do not depend on it."""


@dataclass(frozen=True)
class Subject:
    """A model with the inputs that it is measured on."""

    name: str
    program: Program
    """In floats, or as it was saved."""
    module: Any
    """The PyTorch model; None where there is a program only."""
    inputs: list[Array]

    def expected(self) -> list[Array] | None:
        """Return the outputs in float32."""
        if self.module is None:
            return None
        import torch

        from fewbit.base.typed_torch import from_numpy
        from fewbit.bench.peers.eager import arrays_of

        with torch.inference_mode():
            return list(arrays_of(self.module(*map(from_numpy, self.inputs))))

    def random_samples(self, count: int = SAMPLES) -> list[list[Array]]:
        rng = np.random.default_rng(1)
        return [[_like(array, rng) for array in self.inputs] for _ in range(count)]


def find_subject(name: str, shapes: Shapes | None = None, batch: int | None = None) -> Subject:
    """Return the model of a name; `batch` replaces the first size of its inputs."""
    from fewbit.frontends import import_model
    from fewbit.frontends.frontend import Given
    from fewbit.frontends.input_shape import example_inputs
    from fewbit.frontends.locate import find_module, takes_sizes

    module = find_module(name)
    if module is None:
        if shapes and not takes_sizes(name):
            raise UsageError("the sizes of this model's inputs are fixed already")
        program = import_model(name, input_shapes=shapes)
        return Subject(name, program, None, _make_inputs(program, batch))
    if module.named:
        raise UnsupportedError("models with named inputs are not measured")
    sizes = Given(input_shapes=shapes).sizes
    given = example_inputs(sizes) if sizes else module.inputs
    if not given:
        raise UsageError(
            "nothing says what the model's inputs are", hint="add --input-shape 1x3x32x32"
        )
    inputs = [_with_batch(x.detach().cpu().contiguous().numpy(), batch) for x in given]
    from fewbit.base.typed_torch import from_numpy

    program = import_model(module.model, tuple(map(from_numpy, inputs)))
    return Subject(name, program, module.model, inputs)


def _make_inputs(program: Program, batch: int | None) -> list[Array]:
    """Return inputs for a program; a size that is not known is the batch."""
    rng = np.random.default_rng(0)
    arrays: list[Array] = []
    for port in program.signature.inputs:
        shape = [batch or 1 if size is None else size for size in port.shape or ()]
        if batch is not None and (not shape or shape[0] != batch):
            raise ShapeError(f"the program's input '{port.name}' has no batch of {batch}")
        arrays.append(_like(np.zeros(shape, port.dtype), rng))
    return arrays


def _like(array: Array, rng: np.random.Generator) -> Array:
    """Return random floats; other types as they are, which are valid as indices."""
    if array.dtype.kind in "iub":
        return array
    shape: tuple[int, ...] = array.shape
    return rng.standard_normal(shape).astype(array.dtype)


def _with_batch(array: Array, batch: int | None) -> Array:
    if batch is None or array.ndim == 0 or array.shape[0] == batch:
        return array
    times = -(-batch // array.shape[0])
    return np.ascontiguousarray(np.concatenate([array] * times)[:batch])
