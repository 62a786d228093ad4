"""The math dialect.

Functions of float32 and narrower floats are the formulas that programs compute them by
(`dialects/upstream/formulas.py`), operation by operation, so that targets agree to the bit. Those
of float64, and what processors have instructions for, are numpy's; see `floats`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from fewbit.dialects.upstream import math as upstream
from fewbit.dialects.upstream.formulas import FORMULAS, product_formula
from fewbit.errors import InterpretError
from fewbit.interpreter import floats
from fewbit.interpreter.integers import signed, unsigned, wrap
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register, register_function
from fewbit.interpreter.values import Value, bit_width
from fewbit.numerics.approximations import Lanes, Number, evaluate, powers
from fewbit.numerics.floats import apply_formula, to_working_type


def _register_float(op_class: type[Operation], compute: Callable[..., Any]) -> None:
    """Register a float function: by its formula, or computed in float64 and rounded once."""
    formula = FORMULAS.get(op_class)

    def compute_wide(*operands: Value) -> Value:
        return floats.narrow(compute(*map(floats.widen, operands)), operands[0].dtype)

    def compute_formula(*operands: Value) -> Value:
        assert formula is not None
        return apply_formula(formula, compute, *operands).astype(operands[0].dtype)[()]

    register_function(op_class, compute_wide if formula is None else compute_formula)


@register(math.PowFOp, math.FPowIOp, elementwise=True)
def power(
    frame: Frame, op: math.PowFOp | math.FPowIOp, operands: Sequence[Value]
) -> Sequence[Value]:
    base, exponent = operands
    if base.dtype == np.float64:
        return (np.power(base, exponent),)
    products = product_formula(op)
    if products is not None:
        result = evaluate(products, to_working_type(base))
    elif isinstance(op, math.PowFOp):
        result = evaluate(powers.powf, to_working_type(base), to_working_type(exponent))
    else:
        wide = Lanes(np.atleast_1d(exponent.astype(np.float64)))

        def raise_to(x: Number) -> Number:
            return powers.power(x, wide)

        result = evaluate(raise_to, to_working_type(base))
    return (result.astype(base.dtype)[()],)


_register_float(math.AcosOp, np.arccos)
_register_float(math.AcoshOp, np.arccosh)
_register_float(math.AsinOp, np.arcsin)
_register_float(math.AsinhOp, np.arcsinh)
_register_float(math.AtanOp, np.arctan)
_register_float(math.Atan2Op, np.arctan2)
_register_float(math.AtanhOp, np.arctanh)
_register_float(math.CbrtOp, np.cbrt)
_register_float(math.CosOp, np.cos)
_register_float(math.CoshOp, np.cosh)
_register_float(math.ErfOp, floats.erf)
_register_float(upstream.ErfcOp, floats.erfc)
_register_float(math.ExpOp, np.exp)
_register_float(math.Exp2Op, np.exp2)
_register_float(math.ExpM1Op, np.expm1)
_register_float(math.LogOp, np.log)
_register_float(math.Log10Op, np.log10)
_register_float(math.Log1pOp, np.log1p)
_register_float(math.Log2Op, np.log2)
_register_float(math.RsqrtOp, floats.rsqrt)
_register_float(math.SinOp, np.sin)
_register_float(math.SinhOp, np.sinh)
_register_float(math.SqrtOp, np.sqrt)
_register_float(math.TanOp, np.tan)
_register_float(math.TanhOp, np.tanh)
# These need no rounding, or round by themselves.
register_function(math.AbsFOp, np.abs)
register_function(math.CeilOp, np.ceil)
register_function(math.CopySignOp, np.copysign)
register_function(math.FloorOp, np.floor)
register_function(math.FmaOp, floats.fma)
register_function(math.RoundEvenOp, np.rint)
register_function(math.RoundOp, floats.round_half_away)
register_function(math.TruncOp, np.trunc)
register_function(upstream.IsNaNOp, np.isnan)
register_function(upstream.IsInfOp, np.isinf)
register_function(upstream.IsFiniteOp, np.isfinite)


@register(math.AbsIOp, elementwise=True)
def absi(frame: Frame, op: math.AbsIOp, operands: Sequence[Value]) -> Sequence[Value]:
    width = bit_width(op.result.type)
    return (wrap(np.abs(signed(operands[0], width)), width),)


@register(math.IPowIOp, elementwise=True)
def ipowi(frame: Frame, op: math.IPowIOp, operands: Sequence[Value]) -> Sequence[Value]:
    """Raise integers to powers; a negative one truncates to 0 unless the base is 1 or -1."""
    width = bit_width(op.result.type)
    base, power = (signed(operand, width).astype(np.int64) for operand in operands)
    if np.any((base == 0) & (power < 0)):
        raise InterpretError("takes a negative power of zero")
    odd = (power & 1).astype(bool)
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(odd, -1, 1), 0))
    result = np.ones(np.broadcast_shapes(base.shape, power.shape), np.int64)
    left = np.where(power < 0, 0, power)
    while np.any(left):
        result = np.where(left & 1, result * base, result)
        base, left = base * base, left >> 1
    return (wrap(np.where(power < 0, inverse, result), width),)


@register(math.CtPopOp, math.CountLeadingZerosOp, math.CountTrailingZerosOp, elementwise=True)
def count_bits(frame: Frame, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
    width = bit_width(op.results[0].type)
    bits = unsigned(operands[0], width).astype(np.uint64)
    if isinstance(op, math.CountLeadingZerosOp):
        for shift in (1, 2, 4, 8, 16, 32):
            bits = bits | (bits >> np.uint64(shift))
        count = width - np.bitwise_count(bits).astype(np.int64)
    elif isinstance(op, math.CountTrailingZerosOp):
        below = ~bits & (bits - np.uint64(1))
        count = np.minimum(np.bitwise_count(below), width)
    else:
        count = np.bitwise_count(bits)
    return (wrap(count.astype(np.int64), width),)


@register(upstream.ClampFOp, elementwise=True)
def clampf(frame: Frame, op: upstream.ClampFOp, operands: Sequence[Value]) -> Sequence[Value]:
    value, low, high = operands
    return (floats.minimum(floats.maximum(value, low), high),)
