"""Tensors that a loop carries keep one buffer for all its iterations.

What an iteration hands to the next is written where it was read from, so that the loop has no
buffers that its planner would have to keep apart. Bufferization inserts the copy where a value is
still read after it has been replaced. What it would refuse is copied here: tensors that change
places, each of which would be overwritten before it is read, and what an inner loop carries, whose
place would be that of a tensor which it replaces.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import bufferization, func, scf, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.pipeline.entry import functions_of

VIEWS = (
    tensor.ConcatOp,
    tensor.CastOp,
    tensor.CollapseShapeOp,
    tensor.ExpandShapeOp,
    tensor.ExtractSliceOp,
    tensor.ReshapeOp,
)
"""Ops whose result may be the memory of their first operand."""


@dataclass(frozen=True)
class CarryInPlace(ModulePass):
    """Let loops carry tensors in one place."""

    name = "carry-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            carry_in_place(function)


def carry_in_place(entry: func.FuncOp) -> None:
    """Make the loops of a function carry tensors in place."""
    for op in entry.walk():
        if isinstance(op, scf.ForOp):
            block = op.body.block
            _hand_on(block, block.args[1:], 0)
        elif isinstance(op, scf.WhileOp):
            before, after = op.before_region.block, op.after_region.block
            _hand_on(before, before.args, 1)
            _hand_on(after, after.args, 0)


def _hand_on(block: Block, carried: tuple[SSAValue, ...], first: int) -> None:
    """Write what the block's terminator hands on, from operand `first` on, where it came from."""
    end = block.last_op
    assert end is not None
    replaced = [
        i
        for i, place in enumerate(carried)
        if (value := end.operands[first + i]) is not place
        and value.type == place.type
        and isa(value.type, TensorType[Attribute])
    ]
    for i in replaced:
        if _is_held_elsewhere(end.operands[first + i], carried):
            end.operands[first + i] = _copy(end.operands[first + i], end)
    for i in replaced:
        value, place = end.operands[first + i], carried[i]
        type = value.type
        written: Operation = bufferization.MaterializeInDestinationOp.create(
            operands=[value, place], result_types=[type]
        )
        written.location = end.location
        Rewriter.insert_op(written, InsertPoint.before(end))
        end.operands[first + i] = written.results[0]


def _is_held_elsewhere(value: SSAValue, carried: tuple[SSAValue, ...]) -> bool:
    """Return whether a value is a view of what the block is given, or an inner loop carries."""
    while isinstance(value.owner, VIEWS):
        value = value.owner.operands[0]
    return value in carried or isinstance(value.owner, scf.ForOp | scf.WhileOp)


def _copy(value: SSAValue, end: Operation) -> SSAValue:
    copied = bufferization.AllocTensorOp.build(
        operands=[[], [value], []], result_types=[value.type]
    )
    copied.location = end.location
    Rewriter.insert_op(copied, InsertPoint.before(end))
    return copied.tensor
