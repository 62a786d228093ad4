"""The func dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value


@register(FuncOp)
def func(frame: Frame, op: FuncOp, operands: Sequence[Value]) -> Sequence[Value]:
    raise InterpretError("a function inside a function is not interpreted")


@register(CallOp)
def call(frame: Frame, op: CallOp, operands: Sequence[Value]) -> Sequence[Value]:
    name = op.callee.root_reference.data
    return frame.interpreter.call_symbol(name, FuncOp, "function", operands)


@register(ReturnOp)
def return_(frame: Frame, op: ReturnOp, operands: Sequence[Value]) -> Leave:
    return Leave(tuple(operands))
