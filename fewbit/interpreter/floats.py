"""Float functions that numpy lacks or rounds differently than IR says.

What has no formula of its own (`numerics/floats.py`) is computed in float64 and rounded once. That
is correctly rounded in all but about one case in 2**28, whatever the platform's math library, and
is what makes results comparable between machines.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbit.interpreter.values import DType, Value
from fewbit.numerics.floats import add_to_odd, fused_multiply_add

_NATIVE = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))


def widen(value: Value) -> NDArray[np.float64]:
    return value.astype(np.float64)


def narrow(value: Any, dtype: DType) -> Value:
    """Round float64 to `dtype`, once."""
    if dtype in _NATIVE:
        return value.astype(dtype)
    # ml_dtypes casts by way of float32; to round to odd there keeps the second rounding right.
    return _round_to_odd(np.asarray(value, np.float64)).astype(dtype)[()]


def _round_to_odd(value: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round to float32 towards zero, with the last bit set where anything was cut off."""
    nearest = value.astype(np.float32)
    back = nearest.astype(np.float64)
    inexact = (back != value) & ~np.isnan(value)
    bits = nearest.view(np.uint32) - (inexact & (np.abs(back) > np.abs(value))).astype(np.uint32)
    return (bits | inexact.astype(np.uint32)).view(np.float32)


def maximum(lhs: Value, rhs: Value) -> Value:
    """Return the IEEE 754 maximum: NaN if either is NaN, and +0 above -0."""
    return np.where((lhs == rhs) & (lhs == 0), lhs + rhs, np.maximum(lhs, rhs))


def minimum(lhs: Value, rhs: Value) -> Value:
    """Return the IEEE 754 minimum: NaN if either is NaN, and -0 below +0."""
    return np.where((lhs == rhs) & (lhs == 0), -(-lhs + -rhs), np.minimum(lhs, rhs))


def round_half_away(value: Value) -> Value:
    whole = np.trunc(value)
    half_or_more = np.abs(value - whole) >= value.dtype.type(0.5)
    return whole + np.copysign(half_or_more.astype(value.dtype), value)


def rsqrt(value: Value) -> Value:
    return 1.0 / np.sqrt(value)


_CELLS = 64
_REACH = 6
_TERMS = 9


@cache
def _erf_table() -> NDArray[np.float64]:
    """Return Taylor coefficients of erf around multiples of 1/64 up to 6, highest power first.

    Derivatives follow from erf' = 2/sqrt(pi) exp(-x²) by
    (k + 2) c[k+2] = -2 (x c[k+1] (k + 1) + k c[k]) / (k + 1).
    """
    centres = np.arange(_CELLS * _REACH + 1) / _CELLS
    coefficients = np.zeros((_TERMS, centres.size))
    coefficients[0] = [math.erf(x) for x in centres]
    coefficients[1] = 2 / math.sqrt(math.pi) * np.exp(-centres * centres)
    for k in range(_TERMS - 2):
        lower = centres * coefficients[k + 1] * (k + 1) + k * coefficients[k]
        coefficients[k + 2] = -2 * lower / ((k + 1) * (k + 2))
    return coefficients[::-1]


def erf(value: Value) -> Value:
    """Return erf in float64, to a few units in the last place."""
    size = np.abs(np.nan_to_num(value, nan=0.0))
    size = np.minimum(size, _REACH)
    cell = np.rint(size * _CELLS).astype(np.intp)
    offset = size - cell / _CELLS
    result = np.zeros_like(size)
    for coefficients in _erf_table():
        result = result * offset + coefficients[cell]
    return np.where(np.isnan(value), np.nan, np.copysign(result, value))


_ERFC = np.frompyfunc(math.erfc, 1, 1)


def erfc(value: Value) -> Value:
    """Return 1 - erf without cancellation: the standard library's, element by element."""
    return np.asarray(_ERFC(value), np.float64)


def fma(a: Value, b: Value, c: Value) -> Value:
    """Return a·b + c, rounded once to the operands' type."""
    dtype = a.dtype
    if dtype == np.float64:
        return cast(Value, np.vectorize(_exact_fma, otypes=[np.float64])(a, b, c)[()])
    if dtype == np.float32:
        return fused_multiply_add(a, b, c)[()]
    return narrow(add_to_odd(widen(a) * widen(b), widen(c)), dtype)


def _exact_fma(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.copysign(math.inf, exact)
