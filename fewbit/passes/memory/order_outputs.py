"""Outputs are copied in an order in which none is overwritten before it is read.

Bufferization computes a value in the memory of the output that is made of it: of `y + 1` with a row
replaced, `y + 1` lies in the output. Where `y + 1` is an output as well, it is copied from there,
which must be done before its rows are replaced. Bufferization does not see this, because outputs
are written as memory at the end, and not as tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.errors import PassError
from fewbit.ir.bindings import find_function, is_block, mlir_context
from fewbit.ir.memref_views import VIEWS
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Block, Module, Operation, Value

CARRIED = {"scf.for": 3, "scf.while": 0}
"""Loops whose results may be the memory that they begin with, and its first operand."""
HARMLESS = ("arith.", "memref.")
"""How ops begin that may stand between copies to outputs."""


@dataclass(frozen=True)
class OrderOutputs(BindingsPass):
    """Copy what lies in an output's memory before that is written."""

    name = "order-outputs"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir

        with mlir_context(), ir.Location.unknown():
            for name in function_names(module):
                order_outputs(find_function(module, name).entry_block)


def order_outputs(block: Block) -> None:
    """Reorder the copies at the end of a function."""
    waiting = list(_last_copies(block))[::-1]
    end = list(block.operations)[-1].operation
    while waiting:
        ready = next((op for op in waiting if not _is_read_by_others(op, waiting)), None)
        if ready is None:
            raise PassError("each of several outputs lies in the memory of another")
        ready.move_before(end)
        waiting.remove(ready)


def _last_copies(block: Block) -> Iterator[Operation]:
    """Yield the copies to outputs, from the last to where something else is computed."""
    for op in reversed(list(block.operations)[:-1]):
        operation: Operation = op.operation
        if not operation.name.startswith(HARMLESS) or list(operation.regions):
            return
        if operation.name == "memref.copy" and list(_memories(operation.operands[1])):
            yield operation


def _is_read_by_others(copy: Operation, others: list[Operation]) -> bool:
    """Tell whether others copy from the memory that a copy writes."""
    written = list(_memories(copy.operands[1]))
    return any(
        memory in written
        for other in others
        if other is not copy
        for memory in _memories(other.operands[0])
    )


def _memories(value: Value) -> Iterator[Value]:
    """Yield what a value may be a view of, of the memory that a function is given."""
    owner: Any = value.owner
    if is_block(owner):
        yield value
    elif owner.name in VIEWS:
        yield from _memories(owner.operands[0])
    elif owner.name in CARRIED:
        number = list(owner.results).index(value)
        yield from _memories(owner.operands[CARRIED[owner.name] + number])
    elif owner.name == "scf.if":
        number = list(owner.results).index(value)
        for region in owner.regions:
            (block,) = region.blocks
            yield from _memories(list(block.operations)[-1].operands[number])
