"""Ops that move data: shapes are collapsed and expanded, transposes are loops.

A reshape keeps the dimensions that it has in common with its input, at the front and at the back,
and changes those between: joined to one, then split. What is kept stays visible to later passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico import shapes
from fewbit.dialects.mico.shapes import DYNAMIC, axis
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import elementwise, loops, read, same
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_type,
    collapse,
    collapse_axes,
    expand,
    integers,
    size_of,
    size_product,
    size_quotient,
    sizes_of,
    tensor_type,
)


@dataclass(frozen=True)
class LowerLayout(ModulePass):
    """Turn flatten, reshape, transpose and concat into ops on tensors."""

    name = "lower-layout"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.FlattenOp: _flatten,
                mico.ReshapeOp: _reshape,
                mico.TransposeOp: _transpose,
                mico.ConcatOp: _concat,
            },
        )


def _flatten(op: mico.FlattenOp) -> Sequence[SSAValue]:
    x = integers(op.input)
    rank = len(mico.shape_of(x.type))
    first = axis(op.start_dim.value.data, rank, "start_dim")
    last = axis(op.end_dim.value.data, rank, "end_dim")
    return [as_type(collapse_axes(x, first, last), op.result.type)]


def _reshape(op: mico.ReshapeOp) -> Sequence[SSAValue]:
    x = integers(op.input)
    wanted = ints(op.shape)
    return [as_type(_reshape_to(x, wanted, _wanted_sizes(x, wanted)), op.result.type)]


def _wanted_sizes(x: SSAValue, wanted: Sequence[int]) -> list[Size]:
    static = shapes.reshape(mico.shape_of(x.type), wanted)
    sizes: list[Size] = [
        size_of(x, i) if w == 0 else size
        for i, (w, size) in enumerate(zip(wanted, static, strict=True))
    ]
    if -1 not in wanted or static[wanted.index(-1)] != DYNAMIC:
        return sizes
    inferred = wanted.index(-1)
    others = [size for i, size in enumerate(sizes) if i != inferred]
    sizes[inferred] = size_quotient(_product(sizes_of(x)), _product(others))
    return sizes


def _product(sizes: Sequence[Size]) -> Size:
    total: Size = 1
    for size in sizes:
        total = size_product(total, size)
    return total


def _reshape_to(x: SSAValue, wanted: Sequence[int], sizes: Sequence[Size]) -> SSAValue:
    have = mico.shape_of(x.type)
    if not have:
        element = mico.element_type(x.type)
        scalar = tensor.ExtractOp(x, [], element).result
        return tensor.FromElementsOp(scalar, result_type=tensor_type(sizes, element)).result
    if not sizes:
        return collapse(x, [])
    front, back = _common_dims(have, wanted, sizes)
    if len(have) == len(sizes) == front + back:
        return x
    if front + back == min(len(have), len(sizes)):
        # Only sizes of 1 come or go: a neighbour takes them in.
        front, back = (front - 1, back) if front else (front, back - 1)
    joined = collapse_axes(x, front, len(have) - back - 1)
    behind = len(sizes) - back
    groups = [[i] for i in range(front)]
    groups.append(list(range(front, behind)))
    groups += [[i] for i in range(behind, len(sizes))]
    return expand(joined, groups, sizes)


def _common_dims(
    have: Sequence[int], wanted: Sequence[int], sizes: Sequence[Size]
) -> tuple[int, int]:
    """Return how many leading dimensions are equal, and how many of the others at the back."""
    least = min(len(have), len(sizes))
    front = 0
    while front < least and (wanted[front] == 0 or have[front] == sizes[front]):
        front += 1
    back = 0
    while back < least - front and have[-1 - back] == sizes[-1 - back]:
        back += 1
    return front, back


def _transpose(op: mico.TransposeOp) -> Sequence[SSAValue]:
    x = integers(op.input)
    order = ints(op.permutation)
    sizes, index = sizes_of(x), loops(len(order))
    source = [index[order.index(d)] for d in range(len(order))]
    transposed = elementwise(
        [read(x, *source)], [sizes[d] for d in order], mico.element_type(x.type), same
    )
    return [as_type(transposed, op.result.type)]


def _concat(op: mico.ConcatOp) -> Sequence[SSAValue]:
    parts = [integers(value) for value in op.inputs]
    given = [mico.shape_of(value.type) for value in parts]
    dim = axis(op.dim.value.data, len(given[0]), "dim")
    type = TensorType(mico.element_type(parts[0].type), shapes.concat(given, dim))
    return [as_type(tensor.ConcatOp(parts, dim, type).result, op.result.type)]
