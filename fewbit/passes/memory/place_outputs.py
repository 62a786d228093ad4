"""What is computed for an output is computed in its memory, not copied there at the end.

Bufferization does so for loops that end in an output directly. Calls of kernels have buffers of
their own, and behind a dimension of size 1 that was dropped it does not look: each leaves a buffer
that is copied to the output. Here the buffer becomes a view of the output, where it is whole, is
copied to nowhere else, and nothing else touches the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fewbit.ir.bindings import find_function, is_block, mlir_context
from fewbit.ir.memref_views import RESHAPES
from fewbit.pipeline.context import CompileContext
from fewbit.pipeline.entry import function_names
from fewbit.pipeline.passes import BindingsPass

if TYPE_CHECKING:
    from torch_mlir.ir import Module, OpView, Value


@dataclass(frozen=True)
class PlaceOutputs(BindingsPass):
    """Compute outputs in their own memory, in place of copying them there."""

    name = "place-outputs"

    def apply(self, ctx: CompileContext, module: Module) -> None:
        for name in function_names(module):
            place_outputs(module, name)


def place_outputs(module: Module, entry: str) -> None:
    """Replace buffers that are copied to outputs by those outputs, in place."""
    from torch_mlir import ir

    with mlir_context(), ir.Location.unknown():
        block = find_function(module, entry).entry_block
        for op in list(block.operations):
            if op.operation.name != "memref.copy":
                continue
            source, output = op.operation.operands
            buffer = _buffer_of(source)
            if buffer is not None and _is_only_copied_to(op, output):
                _place(op, buffer, output)


def _buffer_of(value: Value) -> Any:
    """Return the static allocation that a value is a reshape of; None if there is none."""
    while not is_block(value.owner) and value.owner.name in RESHAPES:
        value = value.owner.operands[0]
    if is_block(value.owner) or value.owner.name != "memref.alloc" or value.owner.operands:
        return None
    return value.owner


def _is_only_copied_to(op: OpView, output: Value) -> bool:
    from torch_mlir import ir

    if not is_block(output.owner) or not ir.MemRefType(output.type).has_static_shape:
        return False
    return [use.owner.operation for use in output.uses] == [op.operation]


def _place(copy: OpView, buffer: Any, output: Value) -> None:
    from torch_mlir import ir

    type = ir.MemRefType(buffer.results[0].type)
    sizes, strides = list(type.shape), type.get_strides_and_offset()[0]
    with ir.InsertionPoint(buffer), buffer.location:
        view = ir.Operation.create(
            "memref.reinterpret_cast",
            results=[type],
            operands=[output],
            attributes={
                "static_offsets": ir.DenseI64ArrayAttr.get([0]),
                "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
                "static_strides": ir.DenseI64ArrayAttr.get(strides),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
            },
        )
    buffer.results[0].replace_all_uses_with(view.results[0])
    copy.operation.erase()
    buffer.operation.erase()
