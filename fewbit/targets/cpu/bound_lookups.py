"""Lookups stay inside their table, whatever the data says.

An index that a program computes from its inputs, such as a token, may lie outside the table. The
interpreter refuses it; compiled code takes the nearest row rather than memory that is not its own.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter


def bound_lookups(entry: func.FuncOp) -> None:
    """Clamp the indices of `tensor.extract` that depend on data, in place."""
    for op in list(entry.walk()):
        if isinstance(op, tensor.ExtractOp):
            for axis, index in enumerate(op.indices):
                if not isinstance(index.owner, linalg.IndexOp | arith.ConstantOp):
                    op.operands[1 + axis] = _clamped(index, op.tensor, axis, op)


def _clamped(index: SSAValue, table: SSAValue, axis: int, before: Operation) -> SSAValue:
    zero, one, number = (
        arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (0, 1, axis)
    )
    size = tensor.DimOp(table, number.result)
    last = arith.SubiOp(size.result, one.result)
    least = arith.MaxSIOp(index, zero.result)
    inside = arith.MinSIOp(least.result, last.result)
    made: list[Operation] = [zero, one, number, size, last, least, inside]
    for op in made:
        op.location = before.location
    Rewriter.insert_op(made, InsertPoint.before(before))
    return inside.result
