"""Activation functions of a scalar, as ops of arith and math.

The tanh approximation of GELU is written as the sigmoid that it equals, which keeps its digits for
negative inputs, where 1 + tanh cancels. GELU itself keeps 1 + erf: not every target has erfc.
Kernels compute the same, operation by operation (`numerics/approximations/activations.py`).
"""

from __future__ import annotations

import math as numbers
from collections.abc import Mapping
from typing import Final

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fewbit.numerics.approximations.activations import Activation
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import Unary


def _gelu(x: SSAValue) -> SSAValue:
    """x / 2 · (1 + erf(x / √2))."""
    error = math.ErfOp(s.mul(x, s.constant(numbers.sqrt(0.5), x.type))).result
    return s.mul(s.mul(x, s.constant(0.5, x.type)), s.add(s.constant(1, x.type), error))


def _gelu_tanh(x: SSAValue) -> SSAValue:
    """x · sigmoid(2 · √(2/π) · (x + 0.044715 x³))."""
    cube = s.mul(s.mul(x, x), x)
    inner = s.add(x, s.mul(cube, s.constant(0.044715, x.type)))
    factor = -2 * numbers.sqrt(2 / numbers.pi)
    return _over_one_plus_exp(x, s.mul(inner, s.constant(factor, x.type)))


def _silu(x: SSAValue) -> SSAValue:
    return _over_one_plus_exp(x, arith.NegfOp(x).result)


def _over_one_plus_exp(x: SSAValue, power: SSAValue) -> SSAValue:
    return s.div(x, s.add(s.constant(1, x.type), math.ExpOp(power).result))


ACTIVATIONS: Final[Mapping[Activation, Unary]] = {
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
}
