"""Which integers are known to be no less than 0: those of a layer that ends in a relu."""

from __future__ import annotations

from xdsl.ir import SSAValue

from fewbit.dialects import kernel, mico

MOVES = (mico.ReshapeOp, mico.FlattenOp, mico.TransposeOp, mico.ConcatOp, kernel.Pool2dOp)


def is_unsigned(value: SSAValue) -> bool:
    op = value.owner
    if isinstance(op, mico.ReluOp):
        return True
    if isinstance(op, kernel.ProductOp):
        low, _ = op.bounds
        return low is not None and low >= 0
    return isinstance(op, MOVES) and all(is_unsigned(operand) for operand in op.operands)
