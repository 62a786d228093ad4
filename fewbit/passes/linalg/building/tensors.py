"""Tensors and their sizes: a size is a number, or an `index` value where it is dynamic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    UnrealizedConversionCastOp,
    i8,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.dialects.mico.types import element_type, element_width, shape_of
from fewbit.passes.linalg.building.scalars import constant

Size: TypeAlias = int | SSAValue
Groups: TypeAlias = Sequence[Sequence[int]]
"""For each dimension of the collapsed shape, the dimensions of the expanded one."""


def index_constant(value: int) -> SSAValue:
    return arith.ConstantOp(IntegerAttr(value, IndexType())).result


def as_index(size: Size) -> SSAValue:
    return index_constant(size) if isinstance(size, int) else size


def _arithmetic(op: type[Operation], fold: Callable[[int, int], int]) -> Callable[..., Size]:
    def compute(lhs: Size, rhs: Size) -> Size:
        if isinstance(lhs, int) and isinstance(rhs, int):
            return fold(lhs, rhs)
        return cast(Any, op)(as_index(lhs), as_index(rhs)).result

    return compute


size_sum = _arithmetic(arith.AddiOp, lambda a, b: a + b)
size_difference = _arithmetic(arith.SubiOp, lambda a, b: a - b)
size_product = _arithmetic(arith.MuliOp, lambda a, b: a * b)
size_quotient = _arithmetic(arith.DivSIOp, lambda a, b: a // b)
size_quotient_up = _arithmetic(arith.CeilDivSIOp, lambda a, b: -(-a // b))
larger_size = _arithmetic(arith.MaxSIOp, max)
smaller_size = _arithmetic(arith.MinSIOp, min)


def size_of(value: SSAValue, axis: int) -> Size:
    known = shape_of(value.type)[axis]
    return known if known != DYNAMIC else tensor.DimOp(value, index_constant(axis)).result


def sizes_of(value: SSAValue) -> list[Size]:
    return [size_of(value, axis) for axis in range(len(shape_of(value.type)))]


def tensor_type(sizes: Sequence[Size], element: Attribute) -> TensorType[Attribute]:
    return TensorType(element, [s if isinstance(s, int) else DYNAMIC for s in sizes])


def dynamic(sizes: Sequence[Size]) -> list[SSAValue]:
    return [size for size in sizes if isinstance(size, SSAValue)]


def empty(sizes: Sequence[Size], element: Attribute) -> SSAValue:
    return tensor.EmptyOp(dynamic(sizes), tensor_type(sizes, element)).tensor


def full(sizes: Sequence[Size], element: Attribute, value: float) -> SSAValue:
    scalar = constant(value, element)
    return linalg.FillOp([scalar], [empty(sizes, element)]).res[0]


def as_tensor(value: SSAValue) -> SSAValue:
    """Return a scalar as a tensor of rank 0; a tensor as it is."""
    if isinstance(value.type, TensorType):
        return value
    return tensor.FromElementsOp(value, result_type=TensorType(value.type, [])).result


def integers(value: SSAValue) -> SSAValue:
    """Return a few-bit tensor as i8; any other as it is. `unpack-weights` makes the cast real."""
    if element_width(value.type) is None:
        return value
    plain = TensorType(i8, shape_of(value.type))
    return UnrealizedConversionCastOp.get([value], [plain]).results[0]


def as_type(value: SSAValue, type: Attribute) -> SSAValue:
    """Return a tensor in the type that its users expect: more or fewer known sizes, or few-bit."""
    shape = shape_of(type)
    if shape_of(value.type) != shape:
        value = tensor.CastOp(value, TensorType(element_type(value.type), shape)).dest
    if element_type(value.type) == element_type(type):
        return value
    return UnrealizedConversionCastOp.get([value], [type]).results[0]


def with_shape(value: SSAValue, shape: Sequence[int]) -> SSAValue:
    return as_type(value, TensorType(element_type(value.type), shape))


def _reassociation(groups: Groups) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr(ArrayAttr(IntegerAttr(i, i64) for i in group) for group in groups)


def collapse(value: SSAValue, groups: Groups) -> SSAValue:
    """Collapse groups of dimensions; all dimensions are in the groups, in order."""
    shape = shape_of(value.type)
    if len(groups) == len(shape):
        return value
    joined: list[int] = []
    for group in groups:
        size = 1
        for axis in group:
            size = DYNAMIC if DYNAMIC in (size, shape[axis]) else size * shape[axis]
        joined.append(size)
    return tensor.CollapseShapeOp(
        operands=[value],
        result_types=[TensorType(element_type(value.type), joined)],
        properties={"reassociation": _reassociation(groups)},
    ).result


def expand(value: SSAValue, groups: Groups, sizes: Sequence[Size]) -> SSAValue:
    """Expand groups of dimensions to those of `sizes`."""
    if len(groups) == len(sizes):
        return value
    type = tensor_type(sizes, element_type(value.type))
    static = [s if isinstance(s, int) else DYNAMIC for s in sizes]
    collapsed = [
        DYNAMIC if any(static[i] == DYNAMIC for i in group) else _product(static, group)
        for group in groups
    ]
    value = with_shape(value, collapsed)
    return tensor.ExpandShapeOp(value, dynamic(sizes), _reassociation(groups), static, type).result


def _product(sizes: Sequence[int], axes: Sequence[int]) -> int:
    total = 1
    for axis in axes:
        total *= sizes[axis]
    return total


def expand_axis(value: SSAValue, axis: int, parts: Sequence[Size]) -> SSAValue:
    """Expand one dimension to several."""
    sizes = sizes_of(value)
    extra = len(parts) - 1
    groups = [
        [i] if i < axis else list(range(i, i + extra + 1)) if i == axis else [i + extra]
        for i in range(len(sizes))
    ]
    return expand(value, groups, [*sizes[:axis], *parts, *sizes[axis + 1 :]])


def collapse_axes(value: SSAValue, first: int, last: int) -> SSAValue:
    """Collapse the dimensions from `first` to `last`, both included."""
    rank = len(shape_of(value.type))
    groups = [[i] for i in range(first)]
    groups.append(list(range(first, last + 1)))
    groups += [[i] for i in range(last + 1, rank)]
    return collapse(value, groups)


def pad(value: SSAValue, low: Sequence[Size], high: Sequence[Size], fill: float) -> SSAValue:
    """Pad both sides of each dimension."""
    if all(isinstance(size, int) and size == 0 for size in (*low, *high)):
        return value
    element = element_type(value.type)
    scalar = constant(fill, element)

    @Builder.implicit_region([IndexType()] * len(low))
    def region(_: tuple[BlockArgument, ...]) -> None:
        tensor.YieldOp(scalar)

    result = [
        size + before + after
        if isinstance(before, int) and isinstance(after, int) and size != DYNAMIC
        else DYNAMIC
        for size, before, after in zip(shape_of(value.type), low, high, strict=True)
    ]
    return tensor.PadOp(
        value,
        dynamic(low),
        dynamic(high),
        region,
        [s if isinstance(s, int) else DYNAMIC for s in low],
        [s if isinstance(s, int) else DYNAMIC for s in high],
        TensorType(element, result),
    ).result
