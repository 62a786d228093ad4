"""Sizes are not divided by zero.

Upstream infers a size of a view by dividing by the others, and a batch of nothing makes one of them
zero, which would end the process. The quotient does not matter then: nothing is read or written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import index_constant, is_constant, mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module

DIVISIONS = (
    "arith.divui", "arith.divsi", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui",
    "arith.remui", "arith.remsi",
)  # fmt: skip


@dataclass(frozen=True)
class GuardDivisions(BindingsPass):
    """Divide sizes by at least 1."""

    name = "guard-divisions"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        guard_divisions(module)


def guard_divisions(module: Module) -> None:
    """Divide indices by at least 1, in place."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    with mlir_context(), ir.Location.unknown():
        index = ir.IndexType.get()
        for op in list(walk(module)):
            if op.operation.name not in DIVISIONS or op.operation.results[0].type != index:
                continue
            divisor = op.operation.operands[1]
            if is_constant(divisor):
                continue
            with ir.InsertionPoint(op), op.operation.location:
                op.operation.operands[1] = arith.MaxUIOp(divisor, index_constant(1)).result
