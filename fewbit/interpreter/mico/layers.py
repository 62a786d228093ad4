"""Quantizable layers, in the four combinations of float and few-bit, and bare accumulators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fewbit.dialects.mico import (
    BitConv1dOp,
    BitConv2dOp,
    BitLinearOp,
    EmbeddingOp,
    QuantizedLayerOp,
)
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.dialects.mico.syntax import ints
from fewbit.errors import InterpretError
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import Operands, as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics import (
    Quantized,
    bitconv1d,
    bitconv2d,
    bitlinear,
    conv1d,
    conv2d,
    linear,
    quantize_activation,
)

Rows = Literal["row", "sample"]


def activation_of(op: QuantizedLayerOp, given: Operands, rows: Rows) -> Value | Quantized:
    """Return the input, quantized unless it stays float."""
    x = given.tensor(op.input, op.act_scale, op.act_zero_point)
    if isinstance(x, Quantized) or op.act_width is None:
        return x
    mode = "mean" if op.act_mode is not None and op.act_mode.data == "mean" else "max"
    scale, zero_point = given.get(op.act_scale), given.get(op.act_zero_point)
    if isinstance(op, BitLinearOp) and op.act_group is not None:
        size = op.act_group.value.data
        return quantize_activation(x, op.act_width, granularity="group", group=size, mode=mode)
    if scale is None:
        return quantize_activation(x, op.act_width, granularity=rows, mode=mode)
    return quantize_activation(
        x,
        op.act_width,
        granularity="tensor" if scale.shape == () else rows,
        scale=scale,
        zero_point=None if zero_point is None else np.broadcast_to(zero_point, scale.shape),
    )


def weight_of(op: QuantizedLayerOp, given: Operands) -> Value | Quantized:
    """Return the weight with its scales."""
    return given.tensor(op.weight, op.weight_scale, op.weight_zero_point, op.weight_offset)


def sum_with_bias(acc: Value, bias: Value | None, channel_axis: int) -> Value:
    """Add an i32 bias to accumulators, which must not overflow."""
    if bias is None:
        return acc
    shape = [1] * acc.ndim
    shape[channel_axis] = -1
    total = acc.astype(np.int64) + bias.reshape(shape)
    if total.max(initial=0) >= 1 << 31 or total.min(initial=0) < -(1 << 31):
        raise InterpretError("an accumulator with its bias does not fit into 32 bits")
    return total.astype(np.int32)


@register(BitLinearOp)
def bit_linear(frame: Frame, op: BitLinearOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    bias = given.get(op.bias)
    if op.gives_accumulators:
        zeros = given.get(op.act_zero_point), given.get(op.weight_zero_point)
        return (sum_with_bias(linear(given[op.input], given[op.weight], *zeros), bias, -1),)
    y = bitlinear(activation_of(op, given, "row"), weight_of(op, given), bias)
    return (as_type(y, op.result.type),)


@register(BitConv2dOp)
def bit_conv2d(frame: Frame, op: BitConv2dOp, operands: Sequence[Value]) -> Sequence[Value]:
    stride, dilation, padding = ints(op.stride), ints(op.dilation), op.padding_pairs
    where = {"stride": stride, "padding": padding, "dilation": dilation}
    return _convolution(op, operands, conv2d, bitconv2d, where)


@register(BitConv1dOp)
def bit_conv1d(frame: Frame, op: BitConv1dOp, operands: Sequence[Value]) -> Sequence[Value]:
    (stride,), (dilation,), (padding,) = ints(op.stride), ints(op.dilation), op.padding_pairs
    where = {"stride": stride, "padding": padding, "dilation": dilation}
    return _convolution(op, operands, conv1d, bitconv1d, where)


def _convolution(
    op: ConvolutionOp,
    operands: Sequence[Value],
    accumulate: Callable[..., Value],
    convolve: Callable[..., Value],
    where: Mapping[str, Any],
) -> Sequence[Value]:
    given = Operands(op, operands)
    bias, groups = given.get(op.bias), op.groups.value.data
    if op.gives_accumulators:
        acc = accumulate(
            given[op.input],
            given[op.weight],
            x_zero_point=given.get(op.act_zero_point),
            w_zero_point=given.get(op.weight_zero_point),
            groups=groups,
            **where,
        )
        return (sum_with_bias(acc, bias, 1),)
    x, weight = activation_of(op, given, "sample"), weight_of(op, given)
    y = convolve(x, weight, bias, groups=groups, **where)
    return (as_type(y, op.result.type),)


@register(EmbeddingOp)
def embedding(frame: Frame, op: EmbeddingOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    indices = given[op.indices].astype(np.int64)
    table = given.tensor(op.weight, op.weight_scale, op.weight_zero_point, op.weight_offset)
    rows = table.shape[0]
    if indices.size and not 0 <= indices.min() <= indices.max() < rows:
        raise InterpretError(
            f"indices {indices.min()} to {indices.max()} into a table of {rows} rows"
        )
    if isinstance(table, Quantized):
        return (as_type(_take_rows(table, indices), op.result.type),)
    return (table[indices],)


def _take_rows(table: Quantized, indices: Value) -> Value:
    """Dequantize only the rows that are asked for."""
    flat = indices.reshape(-1)
    return table.take_rows(flat).dequantize().reshape(*indices.shape, -1)
