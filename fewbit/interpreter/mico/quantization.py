"""Quantization, and integers with their scale as one value.

A `!mico.qtensor` is held as an array of rank 0 whose element is the tuple of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np
from xdsl.ir import Attribute

from fewbit.dialects.mico import (
    ActivationQuantOp,
    BundleOp,
    DequantizeOp,
    QTensorType,
    QuantizeOp,
    RequantizeOp,
    UnbundleOp,
    WeightQuantOp,
    element_width,
    read_width,
)
from fewbit.dialects.mico.shapes import require
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import Operands, as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import DType, Value, register_type
from fewbit.numerics import (
    ActivationGranularity,
    FixedPoint,
    Granularity,
    Mode,
    Quantized,
    Width,
    quantize_activation,
    quantize_weight,
    requantize,
    requantize_fixed,
)


@register_type(QTensorType)
def qtensor_dtype(type: QTensorType) -> DType:
    return np.dtype(object)


def _width(type: Attribute) -> Width:
    width = element_width(type)
    assert width is not None
    return width


@register(WeightQuantOp)
def weight_quant(frame: Frame, op: WeightQuantOp, operands: Sequence[Value]) -> Sequence[Value]:
    quantized = quantize_weight(
        operands[0],
        read_width(op.bits),
        mode=cast(Mode, op.mode.data),
        granularity=cast(Granularity, op.granularity.data),
        group=None if op.group is None else op.group.value.data,
        symmetric=bool(op.symmetric.value.data),
    )
    if op.zero_point is None:
        return quantized.values, quantized.scale
    assert quantized.zero_point is not None
    return quantized.values, quantized.scale, as_type(quantized.zero_point, op.zero_point.type)


@register(ActivationQuantOp)
def activation_quant(
    frame: Frame, op: ActivationQuantOp, operands: Sequence[Value]
) -> Sequence[Value]:
    quantized = quantize_activation(
        operands[0],
        read_width(op.bits),
        granularity=cast(ActivationGranularity, op.granularity.data),
        mode=cast(Mode, op.mode.data),
    )
    if op.scale is None:
        return (as_type(quantized.dequantize(), op.result.type),)
    return quantized.values, quantized.scale


@register(QuantizeOp)
def quantize(frame: Frame, op: QuantizeOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x, scale, zero_point = given[op.input], given[op.scale], given.get(op.zero_point)
    require(x.shape[: scale.ndim], scale.shape, "the scale")
    rows = x.reshape(prod(scale.shape), -1)
    quantized = quantize_activation(
        rows,
        _width(op.result.type),
        granularity="row",
        scale=np.broadcast_to(scale.reshape(-1), rows.shape[:1]),
        zero_point=None if zero_point is None else _broadcast_zero_point(zero_point, scale.shape),
    )
    return (quantized.values.reshape(x.shape),)


def _broadcast_zero_point(zero_point: Value, shape: tuple[int, ...]) -> Value:
    return np.broadcast_to(zero_point, shape).reshape(-1).astype(np.int32)


@register(DequantizeOp)
def dequantize(frame: Frame, op: DequantizeOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    tensor = given.tensor(op.input, op.scale, op.zero_point, op.offset)
    assert isinstance(tensor, Quantized)
    return (as_type(tensor.dequantize(), op.result.type),)


@register(RequantizeOp)
def requantize_op(frame: Frame, op: RequantizeOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    acc, multiplier, shift = given[op.input], given[op.multiplier], given.get(op.shift)
    width, axis = _width(op.result.type), op.axis.value.data
    zero_point = None if op.zero_point is None else int(given[op.zero_point])
    if shift is None:
        return (requantize(acc, multiplier, width, zero_point, axis=axis),)
    fixed = FixedPoint(multiplier.astype(np.int32), shift.astype(np.int32))
    return (requantize_fixed(acc, fixed, width, zero_point, axis=axis),)


@register(BundleOp)
def bundle(frame: Frame, op: BundleOp, operands: Sequence[Value]) -> Sequence[Value]:
    parts = np.empty((), object)
    parts[()] = tuple(operands)
    return (parts,)


@register(UnbundleOp)
def unbundle(frame: Frame, op: UnbundleOp, operands: Sequence[Value]) -> Sequence[Value]:
    return cast(tuple[Value, ...], operands[0][()])
