"""`tm_tensor.scatter` as a loop that writes element by element, in the order of the updates.

Later updates of one place see what earlier ones wrote, so sums over equal indices come out right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.upstream.tm_tensor import ScatterOp
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.elements import (
    element,
    fold_indices,
    inline_region,
    keep_sizes,
    with_element,
)
from fewbit.passes.linalg.building.tensors import Size, size_sum, sizes_of


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
        new, old = element(updates, (update, *window)), element(into, place)
        (combined,) = inline_region(op.region, (new, old))
        return with_element(into, place, combined)

    def step(at: Sequence[Size], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return [write(carried[0], at[0], at[1:])]

    return keep_sizes(fold_indices(sizes_of(updates), op.outputs, step), op.outputs)


def _coordinate(indices: SSAValue, update: Size, i: int) -> SSAValue:
    coordinate = element(indices, (update, i))
    return arith.IndexCastOp(coordinate, IndexType()).result
