"""Loops over tensors that read a transposed operand, made to read what was transposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import DYNAMIC
from fewbit.passes.linalg.building.tensors import Size, empty


class Permuted(NamedTuple):
    """The result, and whether it has the layout of the sources instead of its own."""

    value: SSAValue
    has_moved: bool


def permuted_generic(
    op: linalg.GenericOp, sources: Mapping[int, SSAValue], order: Sequence[int]
) -> Permuted | None:
    """Return `op` on the sources of the inputs that are transposed by `order`, by position.

    Loops are put into the order in which the sources lie in memory. Where the result has one
    element for each iteration it takes over the layout of the sources; others keep theirs.
    """
    rank = len(order)
    whole = AffineMap.identity(rank)
    maps = [attribute.data for attribute in op.indexing_maps]
    read = {i: source for i, source in sources.items() if maps[i] == whole}
    counts_loops = any(isinstance(inner, linalg.IndexOp) for inner in op.body.walk())
    if not read or counts_loops or len(op.results) != 1 or maps[0].num_symbols:
        return None
    moves = maps[-1] == whole and isinstance(op.outputs[0].owner, tensor.EmptyOp)
    init = _transpose_empty(op.outputs[0].owner, order) if moves else op.outputs[0]
    renamed = [AffineDimExpr(d) for d in order]
    unchanged = {*read, len(maps) - 1} if moves else {*read}
    iterators = op.iterator_types.data
    permuted = linalg.GenericOp(
        [read.get(i, value) for i, value in enumerate(op.inputs)],
        [init],
        op.detach_region(op.body),
        [
            AffineMapAttr(
                index if i in unchanged else index.replace_dims_and_symbols(renamed, [], rank, 0)
            )
            for i, index in enumerate(maps)
        ],
        [iterators[order.index(d)] for d in range(rank)],
        [init.type],
    )
    return Permuted(permuted.results[0], moves)


def _transpose_empty(op: object, order: Sequence[int]) -> SSAValue:
    assert isinstance(op, tensor.EmptyOp)
    dynamic = iter(op.dynamic_sizes)
    shape = mico.shape_of(op.tensor.type)
    sizes: list[Size] = [next(dynamic) if extent == DYNAMIC else extent for extent in shape]
    transposed = [sizes[order.index(d)] for d in range(len(order))]
    return empty(transposed, mico.element_type(op.tensor.type))
