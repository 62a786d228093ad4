"""Activation functions of float32, operation by operation as programs compute them.

These are the loops of `lower-elementwise` behind `expand-math`, for kernels that apply them to
accumulators: a layer gives the same bits whether its activation is fused into it or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal

from fewbit.numerics.approximations.formulas import erf, exp
from fewbit.numerics.approximations.number import Number

Activation = Literal["silu", "gelu", "gelu_tanh"]


def silu(x: Number) -> Number:
    return x / (1.0 + exp(-x))


def gelu(x: Number) -> Number:
    return (x * 0.5) * (1.0 + erf(x * math.sqrt(0.5)))


def gelu_tanh(x: Number) -> Number:
    """Compute it as the sigmoid that it equals: 1 + tanh would cancel."""
    inner = x + x * x * x * 0.044715
    return x / (1.0 + exp(inner * (-2 * math.sqrt(2 / math.pi))))


ACTIVATIONS: Final[Mapping[Activation, Callable[[Number], Number]]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}
