"""The inputs of a graph: their types, and their sizes where these are known.

A size that the file names stays dynamic under its name, unless the caller gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from onnx import ValueInfoProto
from torch.export import Dim, ExportedProgram

from fewbit.errors import Place, UnsupportedError, UsageError
from fewbit.frontends import Shapes
from fewbit.frontends.input_shape import InputShape
from fewbit.frontends.onnx.graph import Graph
from fewbit.frontends.onnx.kinds import boundary_dtype

_TRACED_AT = (2, 3, 5, 7, 11, 13)
"""Sizes for dynamic dimensions while tracing; torch takes 1 for a constant."""
_RANDOM = 1 << 24
"""Elements of an example from which on it is zeros, which take no time."""
_LARGE = (64, 96, 128, 160)
"""The same for heights and widths, which windows are moved over."""
SCALES = (0, 1, 4, 16)
"""How large sizes are to be tried, one after the other: small, and multiples of the large ones."""


@dataclass(frozen=True)
class Input:
    name: str
    kind: int
    shape: tuple[int | str, ...]
    """Numbers, and names of dynamic sizes."""

    @property
    def dtype(self) -> torch.dtype:
        return boundary_dtype(self.kind)


def inputs_of(graph: Graph, constants: Mapping[str, Any], shapes: Shapes | None) -> list[Input]:
    fixed = {*graph.constants, *constants}
    infos = [info for info in graph.inputs if info.name not in fixed]
    given = _by_name(shapes, [info.name for info in infos])
    declared = [_input(info, given) for info in infos]
    known = {i.name for i in declared} | {
        s for i in declared for s in i.shape if isinstance(s, str)
    }
    for name in given:
        if name not in known:
            raise UsageError(
                f"--input-shape names '{name}', which is no input or size of the model",
                hint=f"there are {', '.join(sorted(known))}",
            )
    return [_resolve(i, given) for i in declared]


def _by_name(shapes: Shapes | None, names: Sequence[str]) -> dict[str, Sequence[int]]:
    if shapes is None:
        return {}
    if not isinstance(shapes, Mapping):
        if len(shapes) != len(names):
            raise UsageError(
                f"{len(shapes)} input shapes are given, and the model has {len(names)} inputs",
                hint=f"they are {', '.join(names)}; or name them: name=1x3x32x32",
            )
        shapes = dict(zip(names, shapes, strict=True))
    return {name: _sizes(shape) for name, shape in shapes.items()}


def _sizes(shape: Any) -> Sequence[int]:
    return (shape,) if isinstance(shape, int) else InputShape.of(shape)


def _input(info: ValueInfoProto, given: Mapping[str, Sequence[int]]) -> Input:
    if info.type.WhichOneof("value") != "tensor_type":
        raise UnsupportedError(f"the input '{info.name}' is no tensor")
    type = info.type.tensor_type
    if type.HasField("shape"):
        dims = [_size(info.name, axis, dim) for axis, dim in enumerate(type.shape.dim)]
    elif info.name in given:
        dims = list(given[info.name])
    else:
        raise UsageError(
            f"the model does not say which shape its input '{info.name}' has",
            hint=f"give it: --input-shape {info.name}=1x3x32x32",
        )
    boundary_dtype(type.elem_type)
    return Input(info.name, type.elem_type, tuple(dims))


def _size(input: str, axis: int, dim: Any) -> int | str:
    """A number or a name; some exporters write -1 or ? where they know neither."""
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return dim.dim_param.strip("?") or f"{input}_{axis}"


def _resolve(input: Input, given: Mapping[str, Sequence[int]]) -> Input:
    shape = input.shape
    if input.name in given:
        wanted = given[input.name]
        fits = len(wanted) == len(shape) and all(
            isinstance(s, str) or s == w for s, w in zip(shape, wanted, strict=True)
        )
        if not fits:
            raise UsageError(
                f"the input '{input.name}' has shape {_text(shape)}, not {_text(wanted)}",
                place=Place(),
            )
        shape = tuple(wanted)
    return replace(
        input,
        shape=tuple(given[s][0] if isinstance(s, str) and s in given else s for s in shape),
    )


def _text(shape: Sequence[Any]) -> str:
    return "x".join(map(str, shape)) or "()"


def example_inputs(inputs: Sequence[Input], scale: int = 0) -> tuple[torch.Tensor, ...]:
    """Random floats; zeros of other types, which are valid as indices of anything.

    Dynamic sizes are small at scale 0; at others all but the first of each input are large.
    """
    generator = torch.Generator().manual_seed(0)
    chosen: dict[str, int] = {}
    tensors: list[torch.Tensor] = []
    for input in inputs:
        sizes = [_traced_size(input, axis, chosen, scale) for axis in range(len(input.shape))]
        if input.dtype.is_floating_point and prod(sizes) <= _RANDOM:
            tensors.append(torch.randn(sizes, generator=generator).to(input.dtype))
        else:
            tensors.append(_zeros(input, sizes))
    return tuple(tensors)


def _zeros(input: Input, sizes: Sequence[int]) -> torch.Tensor:
    """Memory that nothing touches while torch traces."""
    try:
        return torch.zeros(list(sizes), dtype=input.dtype)
    except RuntimeError as error:
        raise UnsupportedError(
            f"there is no memory for the input '{input.name}', which is {_text(sizes)}"
        ) from error


def _traced_size(input: Input, axis: int, chosen: dict[str, int], scale: int) -> int:
    size = input.shape[axis]
    if isinstance(size, int):
        return size
    if size not in chosen:
        of_image = len(input.shape) == 4 and axis >= 2
        large = of_image or (scale > 0 and axis > 0)
        sizes = [n * max(scale, 1) for n in _LARGE] if large else _TRACED_AT
        unused = [n for n in sizes if n not in chosen.values()] or [sizes[-1]]
        chosen[size] = unused[0]
    return chosen[size]


def with_one_name(
    inputs: Sequence[Input], examples: Sequence[torch.Tensor], sizes: Sequence[int]
) -> list[Input] | None:
    """The inputs with one name for the dynamic sizes that are these ones in the examples."""
    names = [
        name
        for input, example in zip(inputs, examples, strict=True)
        for name, size in zip(input.shape, example.shape, strict=True)
        if isinstance(name, str) and size in sizes
    ]
    if len(set(names)) < 2:
        return None
    return [
        replace(input, shape=tuple(names[0] if s in names else s for s in input.shape))
        for input in inputs
    ]


def dynamic_shapes(inputs: Sequence[Input]) -> Any:
    """Return them as torch.export takes them; None where all sizes are numbers."""
    dims: dict[str, Any] = {}

    def dim(name: str) -> Any:
        if name not in dims:
            word = re.sub(r"\W", "_", name)
            dims[name] = Dim(word if word.isidentifier() else f"size_{word}")
        return dims[name]

    if not any(isinstance(s, str) for input in inputs for s in input.shape):
        return None
    return tuple(
        {axis: dim(s) for axis, s in enumerate(input.shape) if isinstance(s, str)}
        for input in inputs
    )


def refuse_fixed(exported: ExportedProgram, inputs: Sequence[Input]) -> None:
    """Refuse a trace that holds for its own sizes alone, which was not asked for."""
    from fewbit.frontends.torch.open_dims import fixed_sizes

    names: list[str] = []
    for fixed in fixed_sizes(exported):
        number = re.search(r"\[(\d+)\]", fixed.source)
        size = inputs[int(number[1]) if number else 0].shape[fixed.axis]
        if isinstance(size, str) and size not in names:
            names.append(size)
    if not names:
        return
    quoted = ", ".join(f"'{name}'" for name in names)
    given = " ".join(f"--input-shape {name}={_LARGE[0]}" for name in names)
    raise UnsupportedError(
        f"the model cannot be imported with {quoted} dynamic: some op needs the number",
        hint=f"give it, for example {given}",
    )
