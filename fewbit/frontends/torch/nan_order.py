"""Where sorting puts NaN: PyTorch takes it for the largest number.

The comparison that torch-mlir gives is false for NaN on either side, which is no order: elements
beside a NaN would stay unsorted.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.upstream.tm_tensor import SortOp

UPWARDS, DOWNWARDS = ("ole", "olt"), ("oge", "ogt")


def order_nans(function: FuncOp) -> None:
    """Make NaN the largest number in all comparisons that sort."""
    for op in list(function.walk()):
        if isinstance(op, SortOp):
            _order_nans(op)


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
