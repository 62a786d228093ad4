"""Which numbers are known to be no less than 0: those of a layer that ends in a relu.

Quantization by the largest magnitude leaves their sign, and so do ops that only move them.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from fewbit.dialects import kernel, mico

KEEPS = (
    mico.ReshapeOp,
    mico.FlattenOp,
    mico.TransposeOp,
    mico.ConcatOp,
    kernel.Pool2dOp,
    kernel.QuantizeRowsOp,
)


def is_unsigned(value: SSAValue) -> bool:
    op = value.owner
    if isinstance(op, mico.ReluOp | mico.Relu6Op):
        return True
    if isinstance(op, kernel.ProductOp):
        low, _ = op.bounds
        return low is not None and low >= 0
    return isinstance(op, KEEPS) and all(is_unsigned(operand) for operand in op.operands)
