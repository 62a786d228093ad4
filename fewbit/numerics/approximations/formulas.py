"""Exponentials, logarithms and error functions of float32.

Powers of two are built in the exponent's bits. Adding 1.5 · 2**23 rounds to the nearest integer and
leaves it in the lowest bits, from where a shift takes it to the exponent: no conversion is needed.
Results too small for a normal number become 0, because arithmetic on subnormal numbers takes
hundreds of cycles on many processors, and a masked softmax is full of them.
"""

from __future__ import annotations

import math
from math import inf, nan
from typing import Final

import numpy as np

from fewbit.numerics.approximations import tables
from fewbit.numerics.approximations.fits import Coefficients, Fit
from fewbit.numerics.approximations.number import Number, at_least, at_most, select, with_sign_of

_ROUNDER: Final = 1.5 * 2**23
_MANTISSA: Final = 23
_ONE: Final = 0x3F800000
_LOG2_E: Final = 1 / math.log(2)
_SMALLEST: Final = 2.0**-126
_TINY: Final = 2.0**-25
"""Below this f(x) = x in float32, for every f with f(0) = 0 and f'(0) = 1."""


def _split(constant: float) -> tuple[float, float]:
    """Split a constant into 15 bits, whose products with an exponent are exact, and a remainder."""
    high = round(constant * 2**15) / 2**15
    return high, constant - high


_LN2: Final = _split(math.log(2))
_LOG10_2: Final = _split(math.log10(2))


def polynomial(x: Number, coefficients: Coefficients) -> Number:
    total = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def ratio(x: Number, fit: Fit) -> Number:
    return polynomial(x, fit.numerator) / polynomial(x, fit.denominator)


def _round(x: Number, most: int = 127) -> tuple[Number, Number]:
    """Round to the nearest integer, at most `most`: as a float, and in the lowest bits."""
    shifted = at_most(x + _ROUNDER, _ROUNDER + most)
    return shifted - _ROUNDER, shifted.bits()


def _power_of_two(bits: Number, halvings: int = 0) -> Number:
    return ((bits << _MANTISSA) + (_ONE - (halvings << _MANTISSA))).float_of_bits()


def _reduce(x: Number, most: int = 127) -> tuple[Number, Number]:
    """Return r and n of x = r + n · ln 2.

    Beyond the largest n, r grows instead, and so does its power.
    """
    n, bits = _round(x * _LOG2_E, most)
    return (x - n * _LN2[0]) - n * _LN2[1], bits


def _exp_of_remainder(r: Number) -> Number:
    return (r * r * polynomial(r, tables.EXP.numerator) + r) + 1.0


def exp(x: Number) -> Number:
    r, n = _reduce(x)
    return select(x < math.log(_SMALLEST), 0.0, _exp_of_remainder(r) * _power_of_two(n))


def _half_exp(x: Number) -> Number:
    """Return exp(x) / 2 for x >= 0; infinite only where that is."""
    r, n = _reduce(x, most=128)
    return _exp_of_remainder(r) * _power_of_two(n, halvings=1)


def exp2(x: Number) -> Number:
    n, bits = _round(x)
    r = x - n
    power = r * polynomial(r, tables.EXP2.numerator) + 1.0
    return select(x < math.log2(_SMALLEST), 0.0, power * _power_of_two(bits))


def expm1(x: Number) -> Number:
    r, n = _reduce(at_least(x, -20.0))
    scale = _power_of_two(n)
    power = r * r * polynomial(r, tables.EXPM1.numerator) + r
    return select(abs(x) < _TINY, x, power * scale + (scale - 1.0))


def sinh(x: Number) -> Number:
    size = abs(x)
    half = _half_exp(size)
    square = x * x
    small = x * (square * polynomial(square, tables.SINH.numerator) + 1.0)
    return select(size < 1.0, small, with_sign_of(half - 0.25 / half, x))


def cosh(x: Number) -> Number:
    half = _half_exp(abs(x))
    return half + 0.25 / half


def split(x: Number) -> tuple[Number, Number]:
    """Return m - 1 and e of x = m · 2**e, with m between √½ and √2, for finite x > 0."""
    subnormal = x < _SMALLEST
    bits = select(subnormal, x * 2.0**_MANTISSA, x).bits()
    exponent = (bits - _ROOT_HALF) >> _MANTISSA
    fraction = (bits - (exponent << _MANTISSA)).float_of_bits() - 1.0
    return fraction, select(subnormal, exponent - _MANTISSA, exponent).float_of_integer()


_ROOT_HALF: Final = int(np.float32(math.sqrt(0.5)).view(np.int32))


def _log_of_fraction(f: Number) -> tuple[Number, Number]:
    """Return log(1 + f) as f and a correction.

    With s = f / (2 + f), 2s is f - f² / 2 + s · f² / 2: the series begins with an exact number.
    """
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    return f, s * (half + square * polynomial(square, tables.LOG.numerator)) - half


def _with_limits(x: Number, result: Number) -> Number:
    """Return the logarithm where there is one, else its limits or NaN."""
    at_zero = select(x.equals(0.0), result.constant(-inf), nan)
    return select(x > 0.0, select(x < inf, result, x), at_zero)


def log(x: Number) -> Number:
    f, e = split(x)
    whole, correction = _log_of_fraction(f)
    return _with_limits(x, e * _LN2[0] + (whole + (correction + e * _LN2[1])))


def log2(x: Number) -> Number:
    f, e = split(x)
    whole, correction = _log_of_fraction(f)
    return _with_limits(x, e + (whole + correction) * _LOG2_E)


def log10(x: Number) -> Number:
    f, e = split(x)
    whole, correction = _log_of_fraction(f)
    return _with_limits(
        x, e * _LOG10_2[0] + ((whole + correction) * math.log10(math.e) + e * _LOG10_2[1])
    )


def log1p(x: Number) -> Number:
    """Return log(u) + d / u, where u is 1 + x as rounded and d what rounding took away."""
    u = x + 1.0
    lost = select(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    near = log(u)
    exact = select(abs(near) < inf, near + lost / u, near)
    return select(abs(x) < _TINY, x, exact)


def tanh(x: Number) -> Number:
    return _saturating_ratio(x, tables.TANH)


def erf(x: Number) -> Number:
    return _saturating_ratio(x, tables.ERF)


def _saturating_ratio(x: Number, fit: Fit) -> Number:
    """Return an odd function between -1 and 1, which the last rounding must not leave."""
    near = _clamp(x, fit.high)
    return _clamp(near * ratio(near * near, fit), 1.0)


def _clamp(x: Number, bound: float) -> Number:
    return at_least(at_most(x, bound), -bound)


def erfc(x: Number) -> Number:
    """Return exp(-x²) times a slowly falling ratio, whose roundings would add up in float32.

    The square is that of the upper 12 bits, which is exact, and a small remainder.
    """
    size = at_most(abs(x), 10.1)
    high = (size.bits() & ~0xFFF).float_of_bits()
    r, n = _reduce(-(high * high))
    power = _exp_of_remainder(r - (size - high) * (size + high)) * _power_of_two(n)
    scaled = ratio(size.wide(), tables.SCALED_ERFC).narrow()
    positive = select(size > _LARGEST_ERFC, 0.0, power * scaled)
    return select(x < 0.0, 2.0 - positive, positive)


_LARGEST_ERFC: Final = 9.194549
"""Beyond this, erfc is less than the smallest normal number."""
