"""The builtin dialect: modules hold other ops and are not executed themselves."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp

from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value, mismatch


@register(ModuleOp)
def module(frame: Frame, op: ModuleOp, operands: Sequence[Value]) -> Sequence[Value]:
    raise InterpretError("a module inside a function is not interpreted")


@register(UnrealizedConversionCastOp)
def cast(
    frame: Frame, op: UnrealizedConversionCastOp, operands: Sequence[Value]
) -> Sequence[Value]:
    """Pass the value on: an unrealized cast may only change how the same numbers are named."""
    if len(operands) != len(op.results):
        raise InterpretError("a cast between different numbers of values is not interpreted")
    for operand, result in zip(operands, op.results, strict=True):
        if mismatch(operand, result.type) is not None:
            raise InterpretError(f"the values of a cast to {result.type} are held differently")
    return operands
