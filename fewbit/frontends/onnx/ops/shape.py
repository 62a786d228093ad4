"""Shapes: asking for them, and changing them without moving data."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import torch
from torch import Tensor

from fewbit.frontends.onnx.table import Call, is_symbol, op
from fewbit.frontends.onnx.values import Many, Size, Value, known, sizes


@op("Shape", tensors=0, any_sign=True)
def shape(call: Call) -> Value:
    shape = list(_shape_of(call))
    return sizes(shape[slice(call.attr("start", 0), call.attr("end"))])


@op("Size", tensors=0, any_sign=True)
def size(call: Call) -> Value:
    import numpy as np

    array = np.empty((), dtype=object)
    array[()] = prod(_shape_of(call))
    return sizes(array)


def _shape_of(call: Call) -> tuple[Size, ...]:
    value = call.inputs[0]
    if value is None or isinstance(value, Many):
        raise call.refusal("its input is no tensor")
    return value.shape


@op("Reshape", tensors=1, any_sign=True)
def reshape(call: Call, x: Tensor) -> Tensor:
    wanted = call.ints(1) if call.version >= 5 else call.attr("shape")
    if not call.attr("allowzero", 0):
        wanted = [x.shape[i] if s == 0 and i < x.ndim else s for i, s in enumerate(wanted)]
    if -1 in [s for s in wanted if isinstance(s, int)] and 0 in [
        s for s in wanted if isinstance(s, int)
    ]:
        wanted = [0 if s == -1 else s for s in wanted]
    if 0 in [s for s in cast("Sequence[Size]", x.shape) if isinstance(s, int)]:
        # torch-mlir divides by the size and ends the process.
        return x.new_zeros(list(wanted))
    return x.reshape(list(wanted))


@op("Flatten", any_sign=True)
def flatten(call: Call, x: Tensor) -> Tensor:
    axis = call.attr("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    if axis == 1 and x.ndim > 1:
        return torch.flatten(x, 1)
    return x.reshape([prod(x.shape[:axis]), prod(x.shape[axis:])])


def axes_of(call: Call, since: int = 13) -> list[int] | None:
    if call.version < since:
        return call.attr("axes")
    return call.whole(1) if call.has(1) else None


@op("Squeeze", tensors=1, any_sign=True)
def squeeze(call: Call, x: Tensor) -> Tensor:
    axes = axes_of(call)
    if axes is None:
        axes = [i for i, s in enumerate(x.shape) if s == 1]
        for i, size in enumerate(x.shape):
            if i not in axes and is_symbol(size):
                # That a size is not 1 is no more than a habit of torch's tracer, so 0 goes too.
                call.require(size > 1, f"size {i} of its input may be 1")
    axes = sorted({axis % x.ndim for axis in axes})
    for axis in axes:
        call.require(x.shape[axis] == 1, f"size {axis} of its input is not 1")
    if not any(is_symbol(x.shape[axis]) for axis in axes):
        return x.squeeze(axes) if axes else x
    for axis in reversed(axes):
        x = x.select(axis, 0)  # torch's squeeze keeps a dynamic size
    return x


@op("Unsqueeze", tensors=1, any_sign=True)
def unsqueeze(call: Call, x: Tensor) -> Tensor:
    axes = axes_of(call) or []
    rank = x.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@op("Identity", any_sign=True, tensors=0)
def identity(call: Call) -> Value | None:
    return call.inputs[0]


@op("Expand", tensors=1, any_sign=True)
def expand(call: Call, x: Tensor) -> Tensor:
    wanted = call.ints(1)
    rank = max(x.ndim, len(wanted))
    own: list[Size] = [1] * (rank - x.ndim) + list(x.shape)
    given = [1] * (rank - len(wanted)) + list(wanted)
    target = [b if isinstance(a, int) and a == 1 else a for a, b in zip(own, given, strict=True)]
    return x.expand(target)


@op("Tile", tensors=1, any_sign=True)
def tile(call: Call, x: Tensor) -> Tensor:
    repeats = call.ints(1)
    if 0 in [r for r in repeats if isinstance(r, int)]:
        return x.new_zeros([s * r for s, r in zip(x.shape, repeats, strict=True)])
    for axis, count in enumerate(repeats):
        if isinstance(count, int) and count == 1:
            continue
        x = (
            torch.cat([x] * int(count), axis)
            if isinstance(count, int)
            else x.repeat([count if i == axis else 1 for i in range(x.ndim)])
        )
    return x


@op("ConstantOfShape", tensors=0)
def constant_of_shape(call: Call) -> object:

    value = call.attr("value")
    wanted = call.ints(0)
    kind = 1 if value is None else value.kind
    number = 0.0 if value is None else value.items()[0]
    dtype = torch.float32 if value is None else value.tensor.dtype
    result = torch.full(list(wanted), number, dtype=dtype)
    return call.result(result, kind)


@op("OptionalHasElement", tensors=0)
def has_element(call: Call) -> Value:
    from fewbit.frontends.onnx.kinds import BOOL

    return known(call.has(0), BOOL)


@op("OptionalGetElement", "Optional", tensors=0, any_sign=True)
def get_element(call: Call) -> Value | None:
    return call.input(0)
