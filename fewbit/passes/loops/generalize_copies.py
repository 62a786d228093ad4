"""Copies that differ in sizes and strides only are made alike, so that one function serves them.

A concatenation copies each of its operands to a place of its own. Where features are joined again
and again, as in DenseNet, that is hundreds of loop nests, all different, and most of what there is
to compile. Here they get one type for each length of a row: rows have a known length, by which LLVM
vectorizes the loop that does the work; sizes, strides and offsets around it are known when it runs.
A few copies are left as they are, since known sizes are cheaper to compute with.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import find_function, mlir_context, walk
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import MemRefType, Module, OpView

MANY = 8
"""How many different copies of rows of one length are compiled once."""


@dataclass(frozen=True)
class GeneralizeCopies(BindingsPass):
    """Give copies of rows of one length the same type, where there are many."""

    name = "generalize-copies"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        from torch_mlir import ir

        with mlir_context(), ir.Location.unknown():
            alike: dict[Hashable, list[OpView]] = {}
            for name in function_names(module):
                for op in list(walk(find_function(module, name))):
                    if (key := _key(op)) is not None:
                        alike.setdefault(key, []).append(op)
            for copies in alike.values():
                if len({tuple(value.type for value in op.operands) for op in copies}) >= MANY:
                    for op in copies:
                        _generalize(op)


def _key(op: OpView) -> Hashable | None:
    """Return what copies that can be alike have in common; None of what is no copy of rows."""
    from torch_mlir import ir

    if op.operation.name != "linalg.generic" or not _is_copy(op):
        return None
    types = [ir.MemRefType(value.type) for value in op.operands]
    if not all(map(_has_rows, types)):
        return None
    type = types[0]
    return type.rank, type.get_dim_size(type.rank - 1), str(type.element_type)


def _is_copy(op: OpView) -> bool:
    """Tell whether an op gives each element of its operand as it is, in the same order."""
    from torch_mlir import ir

    if len(op.operands) != 2:
        return False
    if not all(isinstance(value.type, ir.MemRefType) for value in op.operands):
        return False
    block: Any = op.regions[0].blocks[0]
    first = next(iter(block.operations)).operation
    if first.name != "linalg.yield" or first.operands[0] != block.arguments[0]:
        return False
    maps = [ir.AffineMapAttr(each).value for each in op.operation.attributes["indexing_maps"]]
    return all(map == ir.AffineMap.get_identity(map.n_dims) for map in maps)


def _has_rows(type: MemRefType) -> bool:
    """Tell whether a buffer of known sizes has rows of neighbouring elements."""
    if type.rank < 2 or not type.has_static_shape or type.memory_space is not None:
        return False
    strides, _ = type.get_strides_and_offset()
    return strides[-1] == 1


def _generalize(op: OpView) -> None:
    """Replace the operands of a copy by casts of them to types that say the row's length only."""
    from torch_mlir import ir
    from torch_mlir.dialects import memref

    size, stride = ir.ShapedType.get_dynamic_size(), ir.ShapedType.get_dynamic_stride_or_offset()
    operands = op.operation.operands
    with ir.InsertionPoint(op), op.operation.location:
        for i in range(len(operands)):
            type = ir.MemRefType(operands[i].type)
            outer = type.rank - 1
            layout = ir.StridedLayoutAttr.get(stride, [*[stride] * outer, 1])
            shape = [*[size] * outer, type.get_dim_size(outer)]
            general = ir.MemRefType.get(shape, type.element_type, layout)
            operands[i] = memref.CastOp(general, operands[i]).result
