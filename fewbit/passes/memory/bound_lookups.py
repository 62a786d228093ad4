"""Lookups and writes stay inside their tensor, whatever the data says.

An index that a program computes from its inputs, such as a token or a position, may lie outside.
The interpreter refuses it; compiled code takes the nearest place rather than memory that is not its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.pipeline.entry import functions_of


@dataclass(frozen=True)
class BoundLookups(ModulePass):
    """Clamp indices that depend on data."""

    name = "bound-lookups"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            bound_lookups(function)


def bound_lookups(entry: func.FuncOp) -> None:
    """Clamp the indices of elements and slices that depend on data, in place."""
    for op in list(entry.walk()):
        if isinstance(op, tensor.ExtractOp):
            _bound(op, op.tensor, 1, [1] * len(op.indices))
        elif isinstance(op, tensor.InsertOp):
            _bound(op, op.dest, 2, [1] * len(op.indices))
        elif isinstance(op, tensor.InsertSliceOp) and op.offsets:
            _bound_slice(op)


def _bound(op: Operation, place: SSAValue, first: int, lengths: Sequence[int]) -> None:
    """Clamp the operands from `first` on, the indices of all axes."""
    for axis, length in enumerate(lengths):
        op.operands[first + axis] = _clamp(op.operands[first + axis], place, axis, length, op)


def _bound_slice(op: tensor.InsertSliceOp) -> None:
    lengths = op.static_sizes.get_values()
    dynamic = [i for i, o in enumerate(op.static_offsets.get_values()) if o == DYNAMIC_INDEX]
    for i, axis in enumerate(dynamic):
        # Where even the length is known only at run time, sizes decide on both, not data.
        if lengths[axis] != DYNAMIC_INDEX:
            operand = op.operands[2 + i]
            op.operands[2 + i] = _clamp(operand, op.dest, axis, lengths[axis], op)


def _clamp(index: SSAValue, place: SSAValue, axis: int, length: int, before: Operation) -> SSAValue:
    """Return the nearest index at which this length fits; those of loops are inside already."""
    if isinstance(index.owner, linalg.IndexOp | arith.ConstantOp):
        return index
    zero, extent, number = (
        arith.ConstantOp(IntegerAttr(value, IndexType())) for value in (0, length, axis)
    )
    size = tensor.DimOp(place, number.result)
    last = arith.SubiOp(size.result, extent.result)
    least = arith.MaxSIOp(index, zero.result)
    inside = arith.MinSIOp(least.result, last.result)
    new_ops: list[Operation] = [zero, extent, number, size, last, least, inside]
    for op in new_ops:
        op.location = before.location
    Rewriter.insert_op(new_ops, InsertPoint.before(before))
    return inside.result
