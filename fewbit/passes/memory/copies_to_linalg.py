"""Copies as loops: MLIR would call a function of its own runtime for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module


@dataclass(frozen=True)
class CopiesToLinalg(BindingsPass):
    """Turn copies into linalg ops."""

    name = "copies-to-linalg"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir
        from torch_mlir.dialects import linalg

        with mlir_context(), ir.Location.unknown():
            for op in list(walk(module)):
                if op.operation.name == "memref.copy":
                    source, target = op.operation.operands
                    with ir.InsertionPoint(op), op.operation.location:
                        linalg.copy(source, outs=[target])
                    op.operation.erase()
