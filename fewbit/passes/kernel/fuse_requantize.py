"""A requantization, done before the accumulators that it reads are stored.

A contraction that gives accumulators takes the multiplier, and also gives the integers of the next
layer. If nothing else reads the accumulators, they are never stored. A relu on the integers is a
bound of theirs, even behind max pooling and what only moves data. The multiplier must be a
constant, one number or one for each channel, without a zero point, and the integers have more than
one bit; it is in f32, or with `fixed_point` also an integer with a shift. Of several readers with
different multipliers one is fused, and equal ones are the same since `cse`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp, TensorType, f64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.shapes import axis
from fewbit.dialects.traits import PicksElements


@dataclass(frozen=True)
class FuseRequantize(ModulePass):
    """Let integer contractions requantize their accumulators."""

    name = "fuse-requantize"

    fixed_point: bool = False
    """Whether multipliers with shifts are fused, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, mico.RequantizeOp) and (self.fixed_point or inner.shift is None):
                _requantize(inner)
            elif isinstance(inner, mico.ReluOp):
                _relu(inner)
        dce(op)


def _requantize(op: mico.RequantizeOp) -> None:
    if not _is_simple(op):
        return
    contraction, reshape = op.input.owner, None
    if isinstance(contraction, mico.ReshapeOp) and _keeps_channels(contraction):
        contraction, reshape = contraction.input.owner, contraction
    if not isinstance(contraction, kernel.ContractionOp) or not _takes_multiplier(contraction):
        return
    fused = _give_multiplier(contraction, op)
    assert fused.quantized is not None
    if reshape is None:
        Rewriter.replace_op(op, [], [fused.quantized])
        return
    shaped = mico.ReshapeOp.of(fused.quantized, shape=reshape.shape, result_types=op.result_types)
    shaped.location = reshape.location
    Rewriter.replace_op(op, [shaped], [shaped.result])


def _is_simple(op: mico.RequantizeOp) -> bool:
    """Return whether a kernel rounds like that."""
    width = mico.element_width(op.result.type)
    if op.zero_point is not None or width is None or width.is_binary:
        return False
    factors = (op.multiplier,) if op.shift is None else (op.multiplier, op.shift)
    if not all(isinstance(f.owner, mico.GetConstantOp | arith.ConstantOp) for f in factors):
        return False
    rank = len(mico.shape_of(op.input.type))
    is_one = mico.shape_of(op.multiplier.type) == ()
    return is_one or axis(op.axis.value.data, rank, "axis") == rank - 1


def _keeps_channels(op: mico.ReshapeOp) -> bool:
    before, after = (mico.shape_of(value.type) for value in (op.input, op.result))
    return before[-1:] == after[-1:]


def _takes_multiplier(op: kernel.ContractionOp) -> bool:
    return not op.gives_floats and op.multiplier is None


def _give_multiplier(op: kernel.ContractionOp, reader: mico.RequantizeOp) -> kernel.ContractionOp:
    """Replace a contraction by one that also requantizes, as its reader does."""
    element = mico.element_type(reader.result.type)
    # Accumulators may be read before the multiplier is.
    factors = {
        name: value.owner.clone()
        for name, value in (("multiplier", reader.multiplier), ("shift", reader.shift))
        if value is not None and isinstance(value.owner, mico.GetConstantOp | arith.ConstantOp)
    }
    integers = TensorType(element, mico.shape_of(op.result.type))
    fused = op.with_changes([op.result.type, integers], **factors)
    Rewriter.replace_op(op, [*factors.values(), fused], [fused.result])
    return fused


def _picked_from(value: SSAValue) -> SSAValue | None:
    """Return the tensor of which a value's elements are some."""
    op = value.owner
    return op.operands[0] if PicksElements.holds(op) and len(op.operands) == 1 else None


def _relu(op: mico.ReluOp) -> None:
    source: SSAValue = op.input
    while source.has_one_use() and (picked := _picked_from(source)) is not None:
        source = picked
    contraction = source.owner
    if not isinstance(contraction, kernel.ContractionOp) or source is not contraction.quantized:
        return
    if (
        contraction.multiplier is None
        or not source.has_one_use()
        or contraction.integer_bounds[1] < 0
    ):
        return
    contraction.properties["minimum"] = FloatAttr(max(contraction.integer_bounds[0], 0.0), f64)
    Rewriter.replace_op(op, [], [op.input])
