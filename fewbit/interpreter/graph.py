"""The graph dialect: hierarchy and placement, which do not change what is computed."""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.dialects.graph import CallOp, ReturnOp, SubgraphOp, TransferOp
from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import Leave, register
from fewbit.interpreter.values import Value


@register(SubgraphOp)
def subgraph(frame: Frame, op: SubgraphOp, operands: Sequence[Value]) -> Sequence[Value]:
    raise InterpretError("a subgraph inside a function is not interpreted")


@register(CallOp)
def call(frame: Frame, op: CallOp, operands: Sequence[Value]) -> Sequence[Value]:
    name = op.callee.root_reference.data
    return frame.interpreter.call_symbol(name, SubgraphOp, "subgraph", operands)


@register(ReturnOp)
def return_(frame: Frame, op: ReturnOp, operands: Sequence[Value]) -> Leave:
    return Leave(tuple(operands))


@register(TransferOp)
def transfer(frame: Frame, op: TransferOp, operands: Sequence[Value]) -> Sequence[Value]:
    return operands
