"""Booleans in memory are read and written as the bytes that they are.

LLVM vectorizes no loop that loads or stores an i1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Type, Value


@dataclass(frozen=True)
class BooleansToBytes(BindingsPass):
    """Load and store bytes of 0 and 1 in place of booleans."""

    name = "booleans-to-bytes"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        booleans_to_bytes(module)


def booleans_to_bytes(module: Module) -> None:
    """Replace loads and stores of i1 in the llvm dialect by those of i8, in place."""
    from torch_mlir import ir
    from torch_mlir.dialects import llvm

    with mlir_context():
        boolean, byte = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(8)
        exactly = ir.Attribute.parse("#llvm.overflow<none>")
        for op in list(walk(module)):
            operation = op.operation
            if operation.name == "llvm.load" and operation.results[0].type == boolean:
                with ir.InsertionPoint(op), operation.location:
                    loaded = _like(operation, [byte], operation.operands)
                    known = llvm.TruncOp(boolean, loaded.results[0], exactly).result
                operation.results[0].replace_all_uses_with(known)
                operation.erase()
            elif operation.name == "llvm.store" and operation.operands[0].type == boolean:
                value, place = operation.operands
                with ir.InsertionPoint(op), operation.location:
                    _like(operation, [], [llvm.ZExtOp(byte, value).result, place])
                operation.erase()


def _like(operation: Any, results: Sequence[Type], operands: Sequence[Value]) -> Any:
    """Return the same op with other operands and results; alignment and other attributes stay."""
    from torch_mlir import ir

    attributes = {name: operation.attributes[name] for name in operation.attributes}
    return ir.Operation.create(
        operation.name, results=results, operands=list(operands), attributes=attributes
    )
