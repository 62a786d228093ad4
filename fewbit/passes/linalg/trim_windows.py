"""Inputs of windows that move nowhere, cut to what the windows read.

A window of 3 with stride 2 reads `x[2·i + j]`, and leaves the last of 4 elements unread.
Where the loop over i is of one step, upstream's `linalg-fold-unit-extent-dims` drops it and leaves
`x[j]`, which says that j runs over all of x: it refuses what it made itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.builder import ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.utils.hints import isa

from fewbit.dialects.mico.types import element_type, shape_of
from fewbit.interpreter.loop_nest import linear_form
from fewbit.ir.rewrite import rewrite
from fewbit.passes.linalg.building.tensors import size_of


@dataclass(frozen=True)
class TrimWindows(ModulePass):
    """Cut what no window reads from inputs whose windows do not move."""

    name = "trim-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [_Trim()])


class _Trim(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, LinalgStructuredOperation) or not op.results:
            return
        maps = [attribute.data for attribute in op.get_indexing_maps()]
        ranges = _known_ranges(maps, op.operands)
        for i, value in enumerate(op.inputs):
            shape = _shape(value)
            read = [_extent(*pair, ranges) for pair in zip(maps[i].results, shape, strict=True)]
            if tuple(read) == shape:
                continue
            block = Block()
            with ImplicitBuilder(block):
                cut = _cut(value, read)
            ops = list(block.ops)
            for new in ops:
                new.detach()
            rewriter.insert(ops)
            op.operands[i] = cut
            rewriter.notify_op_modified(op)


def _shape(value: SSAValue) -> tuple[int, ...]:
    """Return the sizes of a tensor; a scalar has none."""
    type = value.type
    return shape_of(type) if isa(type, TensorType) else ()


def _known_ranges(maps: Sequence[AffineMap], values: Sequence[SSAValue]) -> dict[int, int]:
    """Return the trip count of each loop, where it is static."""
    return {
        expr.position: size
        for map, value in zip(maps, values, strict=True)
        for expr, size in zip(map.results, _shape(value), strict=True)
        if isinstance(expr, AffineDimExpr) and size != DYNAMIC_INDEX
    }


def _extent(expr: AffineExpr, size: int, ranges: Mapping[int, int]) -> int:
    """Return how far a dimension is read, if a loop of one iteration is among its loops."""
    form = linear_form(expr)
    if isinstance(expr, AffineDimExpr) or form is None:
        return size
    steps, last = form
    if not steps.keys() <= ranges.keys() or all(ranges[loop] != 1 for loop in steps):
        return size
    return 1 + last + sum(max(0, step * (ranges[loop] - 1)) for loop, step in steps.items())


def _cut(value: SSAValue, read: Sequence[int]) -> SSAValue:
    sizes = [size_of(value, i) if n == DYNAMIC_INDEX else n for i, n in enumerate(read)]
    zeros, ones = [0] * len(read), [1] * len(read)
    type = TensorType(element_type(value.type), read)
    return tensor.ExtractSliceOp(value, zeros, sizes, ones, type).result
