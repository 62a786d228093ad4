"""The cf dialect: branches and run-time checks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import cf

from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Jump, register
from fewbit.interpreter.values import Value


@register(cf.AssertOp, elementwise=True)
def assert_(frame: Frame, op: cf.AssertOp, operands: Sequence[Value]) -> Sequence[Value]:
    if not np.all(operands[0]):
        raise InterpretError(f"an assertion of the program fails: {op.msg.data}")
    return ()


@register(cf.BranchOp)
def branch(frame: Frame, op: cf.BranchOp, operands: Sequence[Value]) -> Jump:
    return Jump(op.successor, tuple(operands))


@register(cf.ConditionalBranchOp)
def conditional_branch(frame: Frame, op: cf.ConditionalBranchOp, operands: Sequence[Value]) -> Jump:
    then_count = len(op.then_arguments)
    if operands[0]:
        return Jump(op.then_block, tuple(operands[1 : 1 + then_count]))
    return Jump(op.else_block, tuple(operands[1 + then_count :]))


@register(cf.SwitchOp)
def switch(frame: Frame, op: cf.SwitchOp, operands: Sequence[Value]) -> Jump:
    default_count = len(op.default_operands)
    counts = op.case_operand_segments.get_values()
    cases = () if op.case_values is None else op.case_values.get_values()
    start = 1 + default_count
    for case, count, block in zip(cases, counts, op.case_blocks, strict=True):
        if int(operands[0]) == case:
            return Jump(block, tuple(operands[start : start + count]))
        start += count
    return Jump(op.default_block, tuple(operands[1 : 1 + default_count]))
