"""Sizes are not divided by zero.

Upstream infers a size of a view by dividing by the others, and a batch of nothing makes one of them
zero, which would end the process. The quotient does not matter then: nothing is read or written.
"""
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING

from fewbit.ir.bindings import mlir_context
from fewbit.targets.cpu.outline_loops import is_constant, walk

if TYPE_CHECKING:
    from torch_mlir.ir import Module

DIVISIONS = (
    "arith.divui", "arith.divsi", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui",
    "arith.remui", "arith.remsi",
)  # fmt: skip


def guard_divisions(module: Module) -> None:
    """Divide indices by at least 1, in place."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith

    with mlir_context(), ir.Location.unknown():
        index = ir.IndexType.get()
        for op in [o for f in module.body.operations for o in walk(f)]:
            if op.operation.name not in DIVISIONS or op.operation.results[0].type != index:
                continue
            divisor = op.operation.operands[1]
            if is_constant(divisor):
                continue
            with ir.InsertionPoint(op), op.operation.location:
                one = arith.ConstantOp(index, 1).result
                op.operation.operands[1] = arith.MaxUIOp(divisor, one).result
