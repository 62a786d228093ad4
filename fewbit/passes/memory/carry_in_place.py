"""Tensors that a loop carries keep one buffer for all its iterations.

What an iteration hands to the next is written where it was read from, so that the loop has no
buffers that its planner would have to keep apart. Bufferization inserts the copy where a value is
still read after it has been replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import bufferization, func, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.pipeline.entry import entry_of


@dataclass(frozen=True)
class CarryInPlace(ModulePass):
    """Let loops carry tensors in one place."""

    name = "carry-in-place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        carry_in_place(entry_of(op))


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
    for i, place in enumerate(carried):
        value = end.operands[first + i]
        type = value.type
        if value is place or type != place.type or not isa(type, TensorType[Attribute]):
            continue
        written: Operation = bufferization.MaterializeInDestinationOp.create(
            operands=[value, place], result_types=[type]
        )
        written.location = end.location
        Rewriter.insert_op(written, InsertPoint.before(end))
        end.operands[first + i] = written.results[0]
