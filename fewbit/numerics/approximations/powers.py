"""Powers and roots of float32.

A power multiplies the logarithm's error by its exponent, so that float32 is not enough: these are
computed in float64 and rounded once, which also gives overflow and underflow as they should be.
"""

from __future__ import annotations

from math import inf, nan
from typing import Final

from fewbit.numerics.approximations import tables
from fewbit.numerics.approximations.formulas import polynomial, split
from fewbit.numerics.approximations.number import (
    Number,
    at_least,
    at_most,
    select,
    with_sign_of,
)

_ROUNDER: Final = 1.5 * 2**52
_MANTISSA: Final = 52
_ONE: Final = 1023 << _MANTISSA

LARGEST_PRODUCT: Final = 64
"""Up to this exponent, a power is a chain of multiplications."""


def _log2(x: Number) -> Number:
    """Return the logarithm of a float32 that is not negative, in float64."""
    fraction, exponent = split(x)
    f = fraction.wide()
    s = f / (f + 2.0)
    log = exponent.wide() + s * polynomial(s * s, tables.LOG2_WIDE.numerator)
    return select(x.equals(0.0), -inf, select(x < inf, log, x.wide()))


def _exp2(x: Number) -> Number:
    """Return 2**x in float64, for the whole range of float32 and a little more; NaN stays."""
    near = at_least(at_most(x, 200.0), -200.0)
    shifted = near + _ROUNDER
    r = near - (shifted - _ROUNDER)
    scale = ((shifted.bits() << _MANTISSA) + _ONE).float_of_bits()
    return (r * polynomial(r, tables.EXP2_WIDE.numerator) + 1.0) * scale


def powf(x: Number, y: Number) -> Number:
    return power(x, y.wide())


def power(x: Number, y: Number) -> Number:
    """Return x**y for a y of float64, with every special case of C's pow."""
    size = abs(x)
    half = y * 0.5
    whole, even = y.floor().equals(y), half.floor().equals(half)
    result = _exp2(y * _log2(size)).narrow()
    of_negative = select(even, result, select(whole, -result, nan))
    infinite = size.equals(inf) | size.equals(0.0)
    of_special = select(even, result, select(whole, -result, result))
    negative = x.bits() < 0
    signed = select(negative, select(infinite, of_special, of_negative), result)
    one = y.equals(0.0) | x.equals(1.0) | (size.equals(1.0) & abs(y).equals(inf))
    return select(one, 1.0, signed)


def power_of_integer(x: Number, n: int) -> Number:
    """Return x**n by multiplication; in float64 where more than two would round."""
    if n == 0:
        return x.constant(1.0)
    if 0 < n <= 3:
        return _multiply_chain(x, n)
    wide = _multiply_chain(x.wide(), abs(n))
    return (wide if n > 0 else 1.0 / wide).narrow()


def _multiply_chain(x: Number, n: int) -> Number:
    if n == 1:
        return x
    half = _multiply_chain(x, n // 2)
    return half * half * x if n % 2 else half * half


def rsqrt(x: Number) -> Number:
    return 1.0 / x.sqrt()


def cbrt(x: Number) -> Number:
    return with_sign_of(_exp2(_log2(abs(x)) * (1 / 3)).narrow(), x)
