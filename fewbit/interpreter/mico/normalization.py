"""Normalizations, computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewbit.dialects.mico import BatchNormOp, LayerNormOp, RmsNormOp
from fewbit.dialects.mico.shapes import require
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import Operands, as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value


@register(BatchNormOp)
def batch_norm(frame: Frame, op: BatchNormOp, operands: Sequence[Value]) -> Sequence[Value]:
    x, weight, bias, mean, variance = (value.astype(np.float64) for value in operands)
    for parameter in (weight, bias, mean, variance):
        require(x.shape[1:2], parameter.shape, "a parameter")
    channels = (1, -1, *(1,) * (x.ndim - 2))
    factor = weight / np.sqrt(variance + op.eps.value.data)
    y = (x - mean.reshape(channels)) * factor.reshape(channels) + bias.reshape(channels)
    return (as_type(y, op.result.type),)


@register(LayerNormOp)
def layer_norm(frame: Frame, op: LayerNormOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x = given[op.input].astype(np.float64)
    axes = tuple(range(-op.dims.value.data, 0))
    _check_parameters(x, axes, given[op.weight], given.get(op.bias))
    centered = x - x.mean(axis=axes, keepdims=True)
    variance = (centered**2).mean(axis=axes, keepdims=True)
    y = centered / np.sqrt(variance + op.eps.value.data) * given[op.weight]
    bias = given.get(op.bias)
    return (as_type(y if bias is None else y + bias, op.result.type),)


@register(RmsNormOp)
def rms_norm(frame: Frame, op: RmsNormOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x = given[op.input].astype(np.float64)
    axes = tuple(range(-op.dims.value.data, 0))
    _check_parameters(x, axes, given.get(op.weight))
    y = x / np.sqrt((x**2).mean(axis=axes, keepdims=True) + op.eps.value.data)
    weight = given.get(op.weight)
    return (as_type(y if weight is None else y * weight, op.result.type),)


def _check_parameters(x: Value, axes: tuple[int, ...], *parameters: Value | None) -> None:
    for parameter in parameters:
        if parameter is not None:
            require(x.shape[-len(axes) :], parameter.shape, "a parameter")
