"""`tm_tensor.scatter` as a loop that writes element by element, in the order of the updates.

Later updates of one place see what earlier ones wrote, so sums over equal indices come out right.
It is one loop, not one for each dimension, so that a target can keep the tensor that it hands on in
one memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.upstream.tm_tensor import ScatterOp
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    index_constant,
    size_product,
    size_sum,
    sizes_of,
)


@dataclass(frozen=True)
class LowerScatter(ModulePass):
    """Turn scattered writes into a loop."""

    name = "lower-scatter"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {ScatterOp: _scatter})


def _scatter(op: ScatterOp) -> Sequence[SSAValue]:
    updates, indices = op.inputs
    rank = len(mico.shape_of(op.outputs[0].type))
    dims = op.dimension_map.get_values()

    def write(into: SSAValue, update: Size, window: Sequence[Size]) -> SSAValue:
        # An update may leave out leading dimensions of size 1 of its window.
        place: list[Size] = [*[0] * (rank - len(window)), *window]
        for i, dim in enumerate(dims):
            place[dim] = size_sum(place[dim], _coordinate(indices, update, i))
        at = [as_index(each) for each in place]
        new = _at(updates, [as_index(each) for each in (update, *window)])
        combined = _combine(op, new, _at(into, at))
        return tensor.InsertOp(combined, into, at).result

    return [_each(sizes_of(updates), op.outputs[0], lambda into, i: write(into, i[0], i[1:]))]


def _each(
    sizes: Sequence[Size], start: SSAValue, step: Callable[[SSAValue, Sequence[Size]], SSAValue]
) -> SSAValue:
    """Fold a tensor by a step for each index within the sizes, one after another."""
    count = reduce(size_product, sizes, 1)
    body = Block(arg_types=[IndexType(), start.type])
    with ImplicitBuilder(body) as (number, carried):
        remaining, indices = number, list[Size]()
        for size in reversed(sizes[1:]):
            indices.insert(0, 0 if size == 1 else arith.RemUIOp(remaining, as_index(size)).result)
            remaining = remaining if size == 1 else arith.DivUIOp(remaining, as_index(size)).result
        scf.YieldOp(step(carried, (remaining, *indices)))
    bounds = (index_constant(0), as_index(count), index_constant(1))
    return scf.ForOp(*bounds, [start], body).results[0]


def _coordinate(indices: SSAValue, update: Size, i: int) -> SSAValue:
    coordinate = _at(indices, [as_index(update), index_constant(i)])
    return arith.IndexCastOp(coordinate, IndexType()).result


def _at(source: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    return tensor.ExtractOp(source, indices, mico.element_type(source.type)).result


def _combine(op: ScatterOp, new: SSAValue, old: SSAValue) -> SSAValue:
    """Combine an update with the old value, as the region says."""
    block = op.region.block
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, (new, old), strict=True))
    *body, end = block.ops
    for inner in body:
        inner.clone(values)
    return values.get(end.operands[0], end.operands[0])
