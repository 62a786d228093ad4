"""Normalizations, by `numerics/floats.py`."""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.dialects.mico import BatchNormOp, LayerNormOp, RmsNormOp
from fewbit.dialects.mico.shapes import require
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import Operands, as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics import floats


@register(BatchNormOp)
def batch_norm(frame: Frame, op: BatchNormOp, operands: Sequence[Value]) -> Sequence[Value]:
    x, *parameters = operands
    for parameter in parameters:
        require(x.shape[1:2], parameter.shape, "a parameter")
    channels = (1, -1, *(1,) * (x.ndim - 2))
    weight, bias, mean, variance = (parameter.reshape(channels) for parameter in parameters)
    y = floats.batch_norm(x, weight, bias, mean, variance, op.eps.value.data)
    return (as_type(y, op.result.type),)


@register(LayerNormOp)
def layer_norm(frame: Frame, op: LayerNormOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x, weight, bias = given[op.input], given[op.weight], given.get(op.bias)
    axes = tuple(range(-op.dims.value.data, 0))
    _check_parameters(x, axes, weight, bias)
    return (as_type(floats.layer_norm(x, axes, weight, bias, op.eps.value.data), op.result.type),)


@register(RmsNormOp)
def rms_norm(frame: Frame, op: RmsNormOp, operands: Sequence[Value]) -> Sequence[Value]:
    given = Operands(op, operands)
    x, weight = given[op.input], given.get(op.weight)
    axes = tuple(range(-op.dims.value.data, 0))
    _check_parameters(x, axes, weight)
    return (as_type(floats.rms_norm(x, axes, weight, op.eps.value.data), op.result.type),)


def _check_parameters(x: Value, axes: tuple[int, ...], *parameters: Value | None) -> None:
    for parameter in parameters:
        if parameter is not None:
            require(x.shape[-len(axes) :], parameter.shape, "a parameter")
