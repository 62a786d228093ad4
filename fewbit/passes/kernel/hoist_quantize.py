"""Quantization moved up, past what picks or moves values, to where they are computed.

Rounding never changes an order, so the largest of some values, rounded, is the largest of them
rounded; what moves data does not look at it. Behind them a quantization is a pass over floats;
in front of them it may be part of a layer (`fuse-quantize`), and bytes are moved, not floats. It
moves past an op that nothing else reads, and only by a scale for the whole tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.dialects import mico
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.traits import PicksElements
from fewbit.passes.kernel.fuse_quantize import constant_step


@dataclass(frozen=True)
class HoistQuantize(ModulePass):
    """Move quantization in front of ops that pick or move values."""

    name = "hoist-quantize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, mico.QuantizeOp):
                _hoist(inner)


def _hoist(op: mico.QuantizeOp) -> None:
    inner = op.input.owner
    if constant_step(op) is None or not op.input.has_one_use():
        return
    if not isinstance(inner, LayerOp) or not _keeps_order(inner, op):
        return
    element = mico.element_type(op.result.type)
    inputs = [
        mico.QuantizeOp.of(
            value, op.scale, result_types=[TensorType(element, mico.shape_of(value.type))]
        )
        for value in inner.operands
    ]
    hoisted = type(inner).of(*inputs, result_types=[op.result.type], **inner.properties)
    hoisted.location = inner.location
    for each in inputs:
        each.location = op.location
    Rewriter.replace_op(op, [*inputs, hoisted], hoisted.results)
    Rewriter.erase_op(inner)
    for each in inputs:
        _hoist(each)


def _keeps_order(inner: LayerOp, op: mico.QuantizeOp) -> bool:
    if isinstance(inner, mico.ReluOp):
        # At one bit there is no 0, which relu would need.
        width = mico.element_width(op.result.type)
        return width is not None and not width.is_binary
    return PicksElements.holds(inner)
