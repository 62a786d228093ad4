"""Sine, cosine, tangent and their inverses, of float32.

Angles are reduced to an eighth of a turn in float64, with π/2 as the sum of a short number, whose
products with up to 2**20 are exact, and a remainder (Cody and Waite's reduction). That is good to
1e-7 for angles up to 1e8. Beyond it float32 hardly resolves a turn: results stay between -1 and 1,
but say less and less.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fewbit.numerics.approximations import tables
from fewbit.numerics.approximations.formulas import log1p, polynomial, ratio
from fewbit.numerics.approximations.number import (
    SIGN,
    Number,
    at_least,
    at_most,
    select,
    with_sign_of,
)

_ROUNDER: Final = 1.5 * 2**52
_QUARTER_HIGH: Final = round(math.pi / 2 * 2**31) / 2**31
_QUARTER_LOW: Final = 6.077100506506192e-11
"""π/2 - _QUARTER_HIGH, to all digits of float64."""
_EIGHTH: Final = 0.786


def _reduce_angle(x: Number) -> tuple[Number, Number]:
    """Reduce an angle to ±π/4; the number of quarter turns taken off is in the low bits."""
    angle = x.wide()
    shifted = angle * (2 / math.pi) + _ROUNDER
    n = shifted - _ROUNDER
    remainder = ((angle - n * _QUARTER_HIGH) - n * _QUARTER_LOW).narrow()
    return at_least(at_most(remainder, _EIGHTH), -_EIGHTH), shifted.bits().low_word()


def _sin_cos(r: Number) -> tuple[Number, Number]:
    z = r * r
    sine = r * (z * polynomial(z, tables.SIN.numerator) + 1.0)
    cosine = (z * z * polynomial(z, tables.COS.numerator) - z * 0.5) + 1.0
    return sine, cosine


def _sine(x: Number, ahead: int) -> Number:
    """Return the sine of `x` and so many quarter turns."""
    r, n = _reduce_angle(x)
    quarters = n + ahead if ahead else n
    sine, cosine = _sin_cos(r)
    size = select((quarters & 1).equals(0), sine, cosine)
    return (size.bits() ^ ((quarters << 30) & SIGN)).float_of_bits()


def sin(x: Number) -> Number:
    return _sine(x, 0)


def cos(x: Number) -> Number:
    return _sine(x, 1)


def tan(x: Number) -> Number:
    r, n = _reduce_angle(x)
    sine, cosine = _sin_cos(r)
    even = (n & 1).equals(0)
    return select(even, sine, -cosine) / select(even, cosine, sine)


def _fraction_of_pi(part: float) -> tuple[float, float]:
    """Return a fraction of π as a float32 and what rounding took away."""
    high = float(np.float32(part * math.pi))
    return high, part * math.pi - high


_HALF: Final = _fraction_of_pi(0.5)
_WHOLE: Final = _fraction_of_pi(1.0)


def _angle(y: Number, x: Number) -> Number:
    """Return the angle of a point in the first quadrant.

    The smaller coordinate is divided by the larger, so that the quotient is at most 1.
    """
    steep = y > x
    quotient = select(steep, x, y) / select(steep, y, x)
    # Both infinite is the diagonal, and both zero an angle of zero.
    t = select(y.equals(x), select(x > 0.0, y.constant(1.0), y), quotient)
    z = t * t
    flat = t * (z * ratio(z, tables.ATAN) + 1.0)
    return select(steep, _HALF[0] - (flat - _HALF[1]), flat)


def atan(x: Number) -> Number:
    return with_sign_of(_angle(abs(x), x.constant(1.0)), x)


def atan2(y: Number, x: Number) -> Number:
    angle = _angle(abs(y), abs(x))
    left = _WHOLE[0] - (angle - _WHOLE[1])
    return with_sign_of(select(x.bits() < 0, left, angle), y)


def _complement(x: Number) -> Number:
    """Return √(1 - x²) without cancellation."""
    return ((1.0 - x) * (x + 1.0)).sqrt()


def asin(x: Number) -> Number:
    return atan2(x, _complement(x))


def acos(x: Number) -> Number:
    return atan2(_complement(x), x)


def atanh(x: Number) -> Number:
    size = abs(x)
    return with_sign_of(log1p(size * 2.0 / (1.0 - size)) * 0.5, x)
