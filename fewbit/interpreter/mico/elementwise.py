"""Elementwise ops and softmax, by `numerics/floats.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fewbit.dialects.mico import AddOp, MulOp, Relu6Op, ReluOp, SoftmaxOp
from fewbit.dialects.mico.elementwise import ActivationOp
from fewbit.interpreter.floats import erf, maximum, minimum
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics import floats
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.numerics.floats import apply_formula


@register(ReluOp)
def relu(frame: Frame, op: ReluOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (maximum(operands[0], operands[0].dtype.type(0)),)


@register(Relu6Op)
def relu6(frame: Frame, op: Relu6Op, operands: Sequence[Value]) -> Sequence[Value]:
    of = operands[0].dtype.type
    return (minimum(maximum(operands[0], of(0)), of(6)),)


@register(ActivationOp)
def activation(frame: Frame, op: ActivationOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (as_type(apply_activation(operands[0], op.activation), op.result.type),)


_IN_FLOAT64: Mapping[Activation, Callable[[Value], Value]] = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def apply_activation(value: Value, activation: Activation) -> Value:
    """Apply an activation function, as programs compute it."""
    return apply_formula(ACTIVATIONS[activation], _IN_FLOAT64[activation], value)


@register(SoftmaxOp)
def softmax(frame: Frame, op: SoftmaxOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (as_type(floats.softmax(operands[0], op.dim.value.data), op.result.type),)


@register(AddOp)
def add(frame: Frame, op: AddOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (operands[0] + operands[1],)


@register(MulOp)
def mul(frame: Frame, op: MulOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (operands[0] * operands[1],)
