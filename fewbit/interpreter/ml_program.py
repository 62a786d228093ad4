"""The ml_program dialect: globals, which keep their values while the interpreter lives."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.dialects.ml_program import GlobalLoadConstantOp, GlobalOp

from fewbit.dialects.upstream.ml_program import GlobalLoadConstOp, GlobalLoadOp, GlobalStoreOp
from fewbit.errors import InterpretError
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value


@register(GlobalOp)
def global_(frame: Frame, op: GlobalOp, operands: Sequence[Value]) -> Sequence[Value]:
    raise InterpretError("a global inside a function is not interpreted")


@register(GlobalLoadOp, GlobalLoadConstOp)
def load(
    frame: Frame, op: GlobalLoadOp | GlobalLoadConstOp, operands: Sequence[Value]
) -> Sequence[Value]:
    return (_current(frame, op.symbol),)


@register(GlobalLoadConstantOp)
def load_constant(
    frame: Frame, op: GlobalLoadConstantOp, operands: Sequence[Value]
) -> Sequence[Value]:
    return (_current(frame, op.global_attr),)


@register(GlobalStoreOp)
def store(frame: Frame, op: GlobalStoreOp, operands: Sequence[Value]) -> Sequence[Value]:
    definition = _definition(frame, op.symbol)
    if definition.is_mutable is None:
        raise InterpretError(f"stores to @{definition.sym_name.data}, which is not mutable")
    frame.interpreter.globals[definition.sym_name.data] = operands[0]
    return ()


def _definition(frame: Frame, symbol: SymbolRefAttr) -> GlobalOp:
    name = symbol.root_reference.data
    definition = frame.interpreter.symbols.get(name)
    if not isinstance(definition, GlobalOp):
        raise InterpretError(f"@{name} is not a global of the module")
    return definition


def _current(frame: Frame, symbol: SymbolRefAttr) -> Value:
    definition = _definition(frame, symbol)
    name = definition.sym_name.data
    if name in frame.interpreter.globals:
        return frame.interpreter.globals[name]
    if definition.value is None:
        raise InterpretError(f"the global @{name} is read before it has a value")
    value = frame.interpreter.globals[name] = read_constant(definition.value, definition.type)
    return value
