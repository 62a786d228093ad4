"""Layers whose scales are all known when a program is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from fewbit.dialects import mico
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.interpreter.constants import read_constant
from fewbit.numerics import Width
from fewbit.passes.graph.changed_weights import ChangedWeights, is_constant

Scales = npt.NDArray[np.float64]
"""One scale, or one for each channel; in f64, to be rounded once."""

ACCUMULATOR = (1 << 31) - 1


@dataclass(frozen=True)
class Grid:
    """What an activation is rounded to: whole steps, around a zero point, within a width."""

    step: float
    width: Width
    zero_point: int | None


@dataclass(frozen=True)
class StaticLayer:
    """A layer on integers, and what its accumulators stand for."""

    op: mico.QuantizedLayerOp
    grid: Grid
    scale: Scales
    """The scale of accumulators: that of the input times that of the weight."""
    bias: npt.NDArray[np.int32] | None
    """In units of the accumulators."""

    @property
    def axis(self) -> int:
        """The dimension of output channels."""
        if isinstance(self.op, ConvolutionOp):
            return 1
        return len(mico.shape_of(self.op.result.type)) - 1


def static_layer(op: mico.QuantizedLayerOp, weights: ChangedWeights) -> StaticLayer | str:
    """Return the layer, or why it cannot compute on integers alone."""
    if op.act_width is None or op.weight_width is None:
        return "it does not multiply integers by integers"
    if op.act_scale is None:
        return "its activations are scaled at run time"
    if any(mico.element_type(v.type) != f32 for v in (op.input, op.result)):
        return "its input and result are not f32"
    if op.weight_scale is None or op.granularity[0] == "group":
        return "its weight has a scale for each group"
    step, zero_point = _known(op.act_scale, weights), _known(op.act_zero_point, weights)
    if step is None or step.size != 1 or (op.act_zero_point is not None and zero_point is None):
        return "the scale of its activations is no constant"
    if not (is_constant(op.weight) and is_constant(op.weight_scale)):
        return "its weight is no constant"
    scale = np.asarray(float(step) * weights.read(op.weight_scale).astype(np.float64))
    grid = Grid(float(step), op.act_width, None if zero_point is None else int(zero_point))
    if op.bias is None:
        return StaticLayer(op, grid, scale, None)
    bias = _known(op.bias, weights)
    if bias is None:
        return "its bias is no constant"
    whole = np.rint(bias.astype(np.float64) / scale)
    if (np.abs(whole) + _largest_sums(op, weights) > ACCUMULATOR).any():
        return "its bias does not fit into 32 bits, in units of its accumulators"
    return StaticLayer(op, grid, scale, whole.astype(np.int32))


def _largest_sums(op: mico.QuantizedLayerOp, weights: ChangedWeights) -> Scales:
    """Return the largest magnitude that the accumulators of each channel can have."""
    act_width, weight_width = op.act_width, op.weight_width
    assert act_width is not None
    assert weight_width is not None
    rows = np.abs(weights.read(op.weight).astype(np.float64))
    if op.weight_zero_point is not None:
        # It moves an integer by no more than the range of its width.
        rows += 1 << weight_width.bits
    largest = act_width.magnitude if op.act_zero_point is None else (1 << act_width.bits) - 1
    return rows.reshape(rows.shape[0], -1).sum(axis=1) * largest


def _known(value: SSAValue | None, weights: ChangedWeights) -> npt.NDArray[Any] | None:
    """Return the value of a constant, in text or in the store."""
    if value is None:
        return None
    owner = value.owner
    if isinstance(owner, arith.ConstantOp):
        return np.asarray(read_constant(owner.value, owner.result.type))
    return weights.read(value) if is_constant(value) else None
