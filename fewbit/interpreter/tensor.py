"""The tensor dialect, static and dynamic shapes alike.

Results share memory with operands wherever numpy allows; nothing is ever written in place. What
`tensor.empty` holds is not defined by MLIR: here it is NaN, or the smallest integer, so that a
program that reads it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr
from xdsl.ir import Attribute

from fewbit.dialects.upstream import tensor as upstream
from fewbit.errors import InterpretError
from fewbit.interpreter.body import over_indices
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value, dtype_of, index_value, poison, shape_of


def _sizes(static: Sequence[int], dynamic: Iterator[Value]) -> list[int]:
    """Fill dynamic sizes in among the static ones, in order."""
    return [int(next(dynamic)) if number == DYNAMIC_INDEX else number for number in static]


def _result_shape(type: Attribute, dynamic: Sequence[Value]) -> tuple[int, ...]:
    sizes = iter(dynamic)
    shape = tuple(int(next(sizes)) if s is None else s for s in shape_of(type) or ())
    if any(size < 0 for size in shape):
        raise InterpretError(f"a tensor of negative size: {list(shape)}")
    return shape


@register(tensor.YieldOp)
def yield_(frame: Frame, op: tensor.YieldOp, operands: Sequence[Value]) -> Leave:
    return Leave(tuple(operands))


@register(tensor.EmptyOp)
def empty(frame: Frame, op: tensor.EmptyOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (np.broadcast_to(poison(op.tensor.type), _result_shape(op.tensor.type, operands)),)


@register(tensor.SplatOp)
def splat(frame: Frame, op: tensor.SplatOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (np.broadcast_to(operands[0], _result_shape(op.result.type, operands[1:])),)


@register(tensor.FromElementsOp)
def from_elements(
    frame: Frame, op: tensor.FromElementsOp, operands: Sequence[Value]
) -> Sequence[Value]:
    elements = np.array(operands, dtype=dtype_of(op.result.type))
    return (elements.reshape(op.result.type.get_shape()),)


@register(upstream.GenerateOp)
def generate(frame: Frame, op: upstream.GenerateOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (over_indices(frame, op.body.block, _result_shape(op.result.type, operands)),)


@register(tensor.CastOp)
def cast(frame: Frame, op: tensor.CastOp, operands: Sequence[Value]) -> Sequence[Value]:
    return operands


@register(upstream.BitcastOp)
def bitcast(frame: Frame, op: upstream.BitcastOp, operands: Sequence[Value]) -> Sequence[Value]:
    dtype = dtype_of(op.dest.type)
    if operands[0].dtype.itemsize != dtype.itemsize:
        raise InterpretError("a bitcast between different widths")
    same = np.ascontiguousarray(operands[0]).view(dtype)
    return (same.reshape(operands[0].shape),)  # numpy makes one axis of none


@register(upstream.RankOp, elementwise=True)
def rank(frame: Frame, op: upstream.RankOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (index_value(operands[0].ndim),)


@register(tensor.DimOp, elementwise=True)
def dim(frame: Frame, op: tensor.DimOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, axis = operands[0], int(operands[1])
    if not 0 <= axis < source.ndim:
        raise InterpretError(f"asks for dimension {axis} of a tensor of rank {source.ndim}")
    return (index_value(source.shape[axis]),)


@register(tensor.ExtractOp, elementwise=True)
def extract(frame: Frame, op: tensor.ExtractOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, *indices = operands
    _check_indices(indices, source.shape)
    return (source[tuple(indices)],)


@register(tensor.InsertOp)
def insert(frame: Frame, op: tensor.InsertOp, operands: Sequence[Value]) -> Sequence[Value]:
    scalar, dest, *indices = operands
    _check_indices(indices, dest.shape)
    result = np.array(dest)
    result[tuple(indices)] = scalar
    return (result,)


def _check_indices(indices: Sequence[Value], shape: Sequence[int]) -> None:
    for axis, (index, size) in enumerate(zip(indices, shape, strict=True)):
        outside = (index < 0) | (index >= size)
        if np.any(outside):
            worst = np.broadcast_to(index, np.shape(outside))[outside]
            raise InterpretError(
                f"index {int(np.ravel(worst)[0])} is outside dimension {axis} of size {size}"
            )


def _window(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp,
    shape: Sequence[int],
    dynamic: Iterator[Value],
) -> tuple[tuple[slice, ...], list[int]]:
    """Return the slices that an op takes of a tensor of this shape, and their sizes."""
    offsets = _sizes(op.static_offsets.get_values(), dynamic)
    sizes = _sizes(op.static_sizes.get_values(), dynamic)
    strides = _sizes(op.static_strides.get_values(), dynamic)
    slices: list[slice] = []
    for axis, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        last = offset + (size - 1) * stride
        if size < 0 or stride <= 0 or offset < 0 or (size > 0 and last >= shape[axis]):
            raise InterpretError(
                f"the slice of dimension {axis} at {offset}, size {size}, stride {stride} "
                f"leaves its size of {shape[axis]}"
            )
        slices.append(slice(offset, last + 1 if size else offset, stride))
    return tuple(slices), sizes


@register(tensor.ExtractSliceOp)
def extract_slice(
    frame: Frame, op: tensor.ExtractSliceOp, operands: Sequence[Value]
) -> Sequence[Value]:
    source = operands[0]
    slices, sizes = _window(op, source.shape, iter(operands[1:]))
    shape = _result_sizes(sizes, op.static_sizes.get_values(), op.result.type.get_shape())
    return (source[slices].reshape(shape),)


def _result_sizes(sizes: Sequence[int], static: Sequence[int], result: Sequence[int]) -> list[int]:
    """Return the sizes that the result has: it may leave out dimensions of static size 1."""
    kept: list[int] = []
    for size, known in zip(sizes, static, strict=True):
        wanted = result[len(kept)] if len(kept) < len(result) else None
        if known == 1 and wanted != 1:
            continue
        kept.append(size)
    return kept


@register(tensor.InsertSliceOp)
def insert_slice(
    frame: Frame, op: tensor.InsertSliceOp, operands: Sequence[Value]
) -> Sequence[Value]:
    source, dest = operands[:2]
    slices, sizes = _window(op, dest.shape, iter(operands[2:]))
    result = np.array(dest)
    result[slices] = source.reshape(sizes)
    return (result,)


def _groups(reassociation: ArrayAttr[ArrayAttr[IntegerAttr]]) -> list[list[int]]:
    return [[int(i.value.data) for i in group] for group in reassociation]


@register(tensor.CollapseShapeOp)
def collapse_shape(
    frame: Frame, op: tensor.CollapseShapeOp, operands: Sequence[Value]
) -> Sequence[Value]:
    source = operands[0]
    groups = _groups(op.reassociation)
    return (source.reshape([math.prod(source.shape[i] for i in group) for group in groups]),)


@register(tensor.ExpandShapeOp)
def expand_shape(
    frame: Frame, op: tensor.ExpandShapeOp, operands: Sequence[Value]
) -> Sequence[Value]:
    source = operands[0]
    sizes = _sizes(op.static_output_shape.get_values(), iter(operands[1:]))
    for axis, group in enumerate(_groups(op.reassociation)):
        expanded = [sizes[i] for i in group]
        if math.prod(expanded) != source.shape[axis]:
            raise InterpretError(f"dimension {axis} of {source.shape[axis]} expands to {expanded}")
    return (source.reshape(sizes),)


@register(tensor.ReshapeOp)
def reshape(frame: Frame, op: tensor.ReshapeOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, shape = operands
    sizes = [int(size) for size in shape]
    if any(size < 0 for size in sizes) or math.prod(sizes) != source.size:
        raise InterpretError(f"cannot reshape {list(source.shape)} to {sizes}")
    return (source.reshape(sizes),)


@register(tensor.ConcatOp)
def concat(frame: Frame, op: tensor.ConcatOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (np.concatenate(operands, axis=op.dim.value.data),)


@register(tensor.PadOp)
def pad(frame: Frame, op: tensor.PadOp, operands: Sequence[Value]) -> Sequence[Value]:
    source = operands[0]
    dynamic = iter(operands[1:])
    low = _sizes(op.static_low.get_values(), dynamic)
    high = _sizes(op.static_high.get_values(), dynamic)
    if any(amount < 0 for amount in (*low, *high)):
        raise InterpretError(f"negative padding: low {low}, high {high}")
    shape = [sum(sizes) for sizes in zip(low, source.shape, high, strict=True)]
    result = np.array(over_indices(frame, op.region.block, shape), dtype=source.dtype)
    result[tuple(slice(a, a + n) for a, n in zip(low, source.shape, strict=True))] = source
    return (result,)


@register(upstream.GatherOp)
def gather(frame: Frame, op: upstream.GatherOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, indices = operands
    dims = op.gather_dims.get_values()
    coordinates = _coordinates(indices, dims, source.shape)
    gathered = np.moveaxis(source, dims, range(len(dims)))[coordinates]
    kept = [1 if d in dims else size for d, size in enumerate(source.shape)]
    if op.result.type.get_num_dims() == indices.ndim - 1 + source.ndim:
        return (gathered.reshape([*indices.shape[:-1], *kept]),)
    return (gathered,)


@register(upstream.ScatterOp)
def scatter(frame: Frame, op: upstream.ScatterOp, operands: Sequence[Value]) -> Sequence[Value]:
    source, dest, indices = operands
    dims = op.scatter_dims.get_values()
    coordinates = _coordinates(indices, dims, dest.shape)
    result = np.array(dest)
    target = np.moveaxis(result, dims, range(len(dims)))
    target[coordinates] = source.reshape(target[coordinates].shape)
    return (result,)


def _coordinates(indices: Value, dims: Sequence[int], shape: Sequence[int]) -> tuple[Value, ...]:
    coordinates = tuple(indices[..., i].astype(np.int64) for i in range(len(dims)))
    _check_indices(coordinates, [shape[d] for d in dims])
    return coordinates
