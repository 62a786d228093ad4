"""The kernel dialect: the semantics of `mico`'s layers, on channels-last (NHWC) tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from fewbit.dialects.kernel import ContractionOp, Conv2dOp, MatmulOp, Pool2dOp, QuantizeRowsOp
from fewbit.dialects.mico.syntax import ints
from fewbit.dialects.mico.types import element_width
from fewbit.interpreter.floats import maximum, minimum
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.elementwise import apply_activation
from fewbit.interpreter.mico.operands import Operands
from fewbit.interpreter.mico.pooling import average_windows, lowest_value, pooling_windows
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics import (
    ActivationGranularity,
    FixedPoint,
    bitconv2d,
    bitlinear,
    conv2d,
    linear,
    linear_grouped,
    quantize_activation,
    requantize,
    requantize_fixed,
)
from fewbit.numerics.widths import Width


def _channels_first(x: Value) -> Value:
    return x.transpose(0, 3, 1, 2)


def _channels_last(y: Value) -> Value:
    return y.transpose(0, 2, 3, 1)


def _scale(op: ContractionOp, given: Operands, acc: Value) -> Value:
    """Add the bias in int32; or scale to float32 first, each step rounded on its own."""
    x_scale, weight_scale, bias = map(given.get, (op.x_scale, op.weight_scale, op.bias))
    if x_scale is None or weight_scale is None:
        return acc if bias is None else acc + bias
    x_scale = x_scale.reshape(x_scale.shape + (1,) * (acc.ndim - x_scale.ndim))
    y = acc.astype(np.float32) * x_scale * weight_scale
    return y if bias is None else y + bias


def _results(op: ContractionOp, given: Operands, y: Value) -> Sequence[Value]:
    """Scale the accumulators, add the bias, and return the results."""
    if op.multiplier is None:
        return _quantize_result(op, _apply_epilogue(op, given, y))
    assert op.quantized is not None
    width = element_width(op.quantized.type)
    assert width is not None
    if op.shift is None:
        few = requantize(y, given[op.multiplier], width)
    else:
        few = requantize_fixed(y, FixedPoint(given[op.multiplier], given[op.shift]), width)
    low, high = map(np.int8, op.integer_bounds)
    return y, np.clip(few, low, high)


def _group_sum(op: MatmulOp, given: Operands, groups: int) -> Value:
    """Scale each group's sum and add them in order, with the bias."""
    assert op.x_scale is not None
    assert op.weight_scale is not None
    x, weight, bias = given[op.x], given[op.weight], given.get(op.bias)
    if op.weight_offset is not None:
        weight = weight.astype(np.int32) - cast(Width, element_width(op.weight.type)).qmin
    sums = linear_grouped(x, weight, weight.shape[1] // groups).astype(np.float32)
    x_scale = given[op.x_scale]
    if op.has_row_groups:
        x_scale = np.expand_dims(x_scale, -2)
    else:
        x_scale = x_scale.reshape(x_scale.shape + (1,) * (sums.ndim - x_scale.ndim))
    terms = sums * x_scale * given[op.weight_scale]
    if op.weight_offset is not None:
        rows = x.reshape(*x.shape[:-1], 1, groups, -1).sum(-1, dtype=np.int32)
        terms += rows.astype(np.float32) * x_scale * given[op.weight_offset]
    y = terms[..., 0].copy()
    for group in range(1, groups):
        y += terms[..., group]
    return y if bias is None else y + bias


def _apply_epilogue(op: ContractionOp, given: Operands, y: Value) -> Value:
    """Apply what follows the bias: the residual, the activation, then the bounds."""
    added = given.get(op.add)
    if added is not None:
        y = y + added
    if op.activation_name is not None:
        y = apply_activation(y, op.activation_name).astype(np.float32)
    low, high = op.bounds
    if low is not None:
        y = maximum(y, y.dtype.type(low))
    if high is not None:
        y = minimum(y, y.dtype.type(high))
    return y


def _quantize_result(op: ContractionOp | Pool2dOp, y: Value) -> Sequence[Value]:
    """Return the result, quantized if the op has a step."""
    if op.step is None or op.quantized is None:
        return (y,)
    width = element_width(op.quantized.type)
    assert width is not None
    scale = np.float32(op.step.value.data)
    return y, quantize_activation(y, width, granularity="tensor", scale=scale).values


@register(MatmulOp)
def matmul(frame: Frame, op: MatmulOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x, weight = given[op.x], given[op.weight]
    if op.is_float:
        y = bitlinear(x, weight, given.get(op.bias))
    else:
        groups = op.scale_groups
        y = _group_sum(op, given, groups) if groups else _scale(op, given, linear(x, weight))
    return _results(op, given, y)


@register(Conv2dOp)
def convolution(frame: Frame, op: Conv2dOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x, weight, groups = _channels_first(given[op.x]), given[op.weight], op.groups.value.data
    (down, right), (rows, columns) = ints(op.stride), ints(op.dilation)
    height, width = op.padding_pairs
    if not op.is_float:
        acc = conv2d(x, weight, (down, right), (height, width), (rows, columns), groups)
        return _results(op, given, _scale(op, given, _channels_last(acc)))
    y = bitconv2d(
        x,
        weight,
        given.get(op.bias),
        stride=(down, right),
        padding=(height, width),
        dilation=(rows, columns),
        groups=groups,
    )
    return (_apply_epilogue(op, given, _channels_last(y)),)


@register(Pool2dOp)
def pooling(frame: Frame, op: Pool2dOp, operands: Sequence[Value]) -> Sequence[Value]:
    x = _channels_first(operands[0])
    if op.kind.data == "average":
        return (_channels_last(average_windows(op, x).astype(np.float32)),)
    lowest = lowest_value(x, element_width(op.x.type))
    views = pooling_windows(op, x, (1, 1), lowest, lowest)
    return _quantize_result(op, _channels_last(views.max(axis=(4, 5))))


@register(QuantizeRowsOp)
def quantize_rows(frame: Frame, op: QuantizeRowsOp, operands: Sequence[Value]) -> Sequence[Value]:
    granularity = cast(ActivationGranularity, op.granularity.data)
    quantized = quantize_activation(operands[0], op.width, granularity=granularity)
    return quantized.values, quantized.scale
