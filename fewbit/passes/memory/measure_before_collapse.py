"""Sizes of memory whose other dimensions are joined, taken from the memory as it was.

Upstream has no such pattern, and one size must not be two values where memory is planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fewbit.ir.bindings import (
    find_function,
    index_constant,
    is_block,
    known_integer,
    mlir_context,
    walk,
)
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import ENTRY
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Value


@dataclass(frozen=True)
class MeasureBeforeCollapse(BindingsPass):
    """Take sizes of collapsed memory from what was collapsed."""

    name = "measure-before-collapse"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir
        from torch_mlir.dialects import memref

        with mlir_context(), ir.Location.unknown():
            for op in list(walk(find_function(module, ENTRY))):
                if op.operation.name != "memref.dim":
                    continue
                source, axis = op.operation.operands
                origin = _before_collapse(source, known_integer(axis))
                if origin is None:
                    continue
                with ir.InsertionPoint(op), op.operation.location:
                    size = memref.DimOp(origin[0], index_constant(origin[1])).result
                op.operation.results[0].replace_all_uses_with(size)
                op.operation.erase()


def _before_collapse(source: Value, axis: int | None) -> tuple[Value, int] | None:
    from torch_mlir import ir

    if axis is None or is_block(source.owner) or source.owner.name != "memref.collapse_shape":
        return None
    before = source.owner.operands[0]
    sizes = ir.MemRefType(before.type).shape
    axes = [ir.IntegerAttr(a).value for a in source.owner.attributes["reassociation"][axis]]
    longer = [a for a in axes if sizes[a] != 1]
    if len(longer) != 1:
        return None
    return _before_collapse(before, longer[0]) or (before, longer[0])
