"""Which numbers are known to be no less than 0: those of a layer that ends in a relu.

Quantization by the largest magnitude leaves their sign, and so do ops that only move them.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from fewbit.dialects import kernel
from fewbit.dialects.traits import KeepsSign, NeverNegative


def is_unsigned(value: SSAValue) -> bool:
    op = value.owner
    if NeverNegative.holds(op):
        return True
    if isinstance(op, kernel.ContractionOp):
        low, _ = op.bounds
        return low is not None and low >= 0
    return KeepsSign.holds(op) and all(is_unsigned(operand) for operand in op.operands)
