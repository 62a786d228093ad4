"""Sizes of memory whose dimensions are joined, taken from the memory as it was.

Upstream has no such pattern, and where memory is planned, one size must not be two values, nor
depend on memory that is yet to be planned.
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
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, Value


@dataclass(frozen=True)
class MeasureBeforeCollapse(BindingsPass):
    """Take sizes of collapsed memory from what was collapsed."""

    name = "measure-before-collapse"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir

        with mlir_context(), ir.Location.unknown():
            functions = [find_function(module, name) for name in function_names(module)]
            for op in [inner for function in functions for inner in walk(function)]:
                if op.operation.name != "memref.dim":
                    continue
                source, axis = op.operation.operands[0], known_integer(op.operation.operands[1])
                if axis is None or not _is_collapsed(source):
                    continue
                with ir.InsertionPoint(op), op.operation.location:
                    size = _measure(source, axis)
                op.operation.results[0].replace_all_uses_with(size)
                op.operation.erase()


def _is_collapsed(source: Value) -> bool:
    return not is_block(source.owner) and source.owner.name == "memref.collapse_shape"


def _measure(source: Value, axis: int) -> Value:
    """Return the size of a dimension: where it was joined, the product of those it was."""
    from torch_mlir import ir
    from torch_mlir.dialects import arith, memref

    type = ir.MemRefType(source.type)
    if not type.is_dynamic_dim(axis):
        return index_constant(type.shape[axis])
    owner = source.owner
    if not is_block(owner) and owner.name == "memref.alloc":
        return owner.operands[sum(map(type.is_dynamic_dim, range(axis)))]
    if is_block(owner) or owner.name != "memref.collapse_shape":
        return memref.DimOp(source, index_constant(axis)).result
    before = owner.operands[0]
    axes = [ir.IntegerAttr(a).value for a in owner.attributes["reassociation"][axis]]
    sizes = ir.MemRefType(before.type).shape
    first, *others = [_measure(before, a) for a in axes if sizes[a] != 1]
    for other in others:
        first = arith.MulIOp(first, other).result
    return first
