"""The func dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import CallOp, FuncOp, ReturnOp

from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value
from fewbit.program.repeats import names_for


@register(FuncOp)
def func(frame: Frame, op: FuncOp, operands: Sequence[Value]) -> Sequence[Value]:
    raise InterpretError("a function inside a function is not interpreted")


@register(CallOp)
def call(frame: Frame, op: CallOp, operands: Sequence[Value]) -> Sequence[Value]:
    name, constants = op.callee.root_reference.data, dict[str, str]()
    callee = frame.interpreter.symbols.get(name)
    if isinstance(callee, FuncOp) and op.attributes:
        constants = names_for(op, callee)
    return frame.interpreter.call_symbol(name, FuncOp, "function", operands, constants)


@register(ReturnOp)
def return_(frame: Frame, op: ReturnOp, operands: Sequence[Value]) -> Leave:
    return Leave(tuple(operands))
