"""Ops of the memref dialect that give a view of their first operand's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fewbit.ir.bindings import is_block

if TYPE_CHECKING:
    from torch_mlir.ir import Value

RESHAPES = ("memref.cast", "memref.collapse_shape", "memref.expand_shape")
"""Views of the same elements, in their order."""
VIEWS = (
    *RESHAPES,
    "memref.reinterpret_cast",
    "memref.reshape",
    "memref.subview",
    "memref.transpose",
    "memref.view",
)


def root_of(value: Value) -> Value:
    """Return the memory that a memref is a view of."""
    while not is_block(value.owner) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value
