"""Activation functions of float32, operation by operation as programs compute them.

Written once, they are the loops of `lower-elementwise`, in which exp and erf are ops until
`expand-math`, and what kernels apply to accumulators: a layer gives the same bits whether its
activation is fused into it or not. A new one is a name and a function here, and an `ActivationOp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal

from fewbit.numerics.approximations.formulas import erf, exp
from fewbit.numerics.approximations.number import Number

Activation = Literal["silu", "gelu", "gelu_tanh"]


def silu(x: Number) -> Number:
    return x / (1.0 + (-x).apply(exp))


def gelu(x: Number) -> Number:
    """Compute it by 1 + erf: not every target has erfc."""
    return (x * 0.5) * (1.0 + (x * math.sqrt(0.5)).apply(erf))


def gelu_tanh(x: Number) -> Number:
    """Compute it as the sigmoid that it equals: 1 + tanh would cancel."""
    inner = x + x * x * x * 0.044715
    return x / (1.0 + (inner * (-2 * math.sqrt(2 / math.pi))).apply(exp))


ACTIVATIONS: Final[Mapping[Activation, Callable[[Number], Number]]] = {
    "silu": silu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
}
