"""Where NaN stands: sorting takes it for the largest number, and a largest or least one is NaN.

The comparison that torch-mlir gives is false for NaN on either side. That is no order to sort by:
elements beside a NaN would stay unsorted; and the place of the largest would not be that of a NaN.
"""

from __future__ import annotations

import torch
from torch.fx import Graph
from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.upstream.tm_tensor import SortOp

UPWARDS, DOWNWARDS = ("ole", "olt"), ("oge", "ogt")


def tell_nan(graph: Graph) -> None:
    """Ask whether a number differs from itself; that it is the same, torch-mlir takes for true."""
    ops = torch.ops.aten
    for node in list(graph.nodes):
        if node.target is not ops.eq.Tensor or node.args[0] is not node.args[1]:
            continue
        with graph.inserting_before(node):
            differs = graph.call_function(ops.ne.Tensor, node.args)
        differs.meta = dict(node.meta)
        node.target, node.args = ops.logical_not.default, (differs,)


def order_nans(function: FuncOp) -> None:
    """Make NaN the largest number in all comparisons that sort, and find it in all that choose."""
    for op in list(function.walk()):
        if isinstance(op, SortOp):
            _order_nans(op)
        elif isinstance(op, arith.SelectOp):
            _find_first_nan(op)


def _order_nans(sort: SortOp) -> None:
    end = sort.region.block.last_op
    assert end is not None
    compare = end.operands[0].owner
    if not isinstance(compare, arith.CmpfOp):
        return
    predicate = arith.CMPF_COMPARISON_OPERATIONS[compare.predicate.value.data]
    if predicate not in (*UPWARDS, *DOWNWARDS):
        return
    # NaN stands behind any other going up, before any other going down.
    nan = compare.rhs if predicate in UPWARDS else compare.lhs
    is_nan = arith.CmpfOp(nan, nan, "uno")
    either = arith.OrIOp(compare.result, is_nan.result)
    Rewriter.insert_op([is_nan, either], InsertPoint.before(end))
    end.operands[0] = either.result


def _find_first_nan(choice: arith.SelectOp) -> None:
    """Let the place of a largest or least number be that of the first NaN, if it goes by both."""
    compare = choice.cond.owner
    if not isinstance(compare, arith.CmpfOp) or not _is_extreme(compare):
        return
    predicate = arith.CMPF_COMPARISON_OPERATIONS[compare.predicate.value.data]
    beyond = arith.CmpfOp(compare.lhs, compare.rhs, predicate.replace("o", "u", 1))
    is_number = arith.CmpfOp(compare.rhs, compare.rhs, "ord")
    first = arith.AndIOp(beyond.result, is_number.result)
    Rewriter.replace_op(compare, [beyond, is_number, first])


def _is_extreme(compare: arith.CmpfOp) -> bool:
    """Tell whether the larger or lesser of what is compared, or NaN, is computed beside it."""
    return any(
        isinstance(use.operation, arith.MaximumfOp | arith.MinimumfOp)
        and {*use.operation.operands} == {compare.lhs, compare.rhs}
        for use in compare.lhs.uses
    )
