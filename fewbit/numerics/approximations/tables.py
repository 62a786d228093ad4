"""The coefficients of the formulas; a test computes them again.

Those of float32 formulas are written with the digits that float32 needs.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fewbit.numerics.approximations.fits import Array, Fit


def _zero(x: Array) -> Array:
    return np.zeros_like(x)


def _one(x: Array) -> Array:
    return np.ones_like(x)


def _same(x: Array) -> Array:
    return x


def _square(x: Array) -> Array:
    return x * x


def _cube(x: Array) -> Array:
    return x * x * x


def _erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x])


def _scaled_erfc(x: Array) -> Array:
    return np.array([math.erfc(v) * math.exp(v * v) for v in x])


# fmt: off
EXP: Final = Fit(
    np.exp, lambda r: 1 + r, _square, _same, -0.4, 0.7,
    (0.500003, 0.16666631, 0.04161554, 0.008362079, 0.0015917496),
    6.6e-8,
)
"""Up to ln 2: the largest powers keep the exponent of 2**127."""

EXP2: Final = Fit(
    np.exp2, _one, _same, _same, -0.5, 1,
    (0.6931471, 0.2402276, 0.055505894, 0.009607361, 0.0013310388, 0.00018093543),
    5.6e-8,
)

EXPM1: Final = Fit(
    np.expm1, _same, _square, _same, -0.35, 0.7,
    (0.49999997, 0.16666695, 0.041667677, 0.008327312, 0.0013853102, 0.00023058761),
    6.5e-9,
)

LOG: Final = Fit(
    lambda s: 2 * np.arctanh(s), lambda s: 2 * s, _cube, _square, 1e-3, 0.1716,
    (0.66666776, 0.3997756, 0.2987136),
    8.6e-10,
)
"""The logarithm of m as 2 artanh(s), s = (m - 1) / (m + 1), for m between √½ and √2."""

TANH: Final = Fit(
    np.tanh, _zero, _same, _square, 1e-3, 9.02,
    (1.0, 0.13379683, 0.0034939928, 2.058279e-05, 1.3318123e-08),
    4.3e-8,
    (1.0, 0.46712998, 0.025870916, 0.0003283024, 7.761628e-07),
)
"""Up to where float32 has no number below 1 that is closer."""

ERF: Final = Fit(
    _erf, _zero, _same, _square, 1e-3, 3.93,
    (1.1283791, 0.19077705, 0.05278926, 0.0037792835, 0.00028479568, 2.0419504e-06),
    5.5e-8,
    (1.0, 0.50240445, 0.1142546, 0.014996788, 0.0011651233, 3.8003185e-05),
)

SCALED_ERFC: Final = Fit(
    _scaled_erfc, _zero, _one, _same, 0, 10.1,
    (1.0, 1.2384306, 0.7316241, 0.2292278, 0.032798197),
    9.8e-9,
    (1.0, 2.3668103, 2.4022744, 1.3254056, 0.4063221, 0.058132593),
)
"""erfc(x) · exp(x²), which falls slowly."""

ATAN: Final = Fit(
    np.arctan, _same, _cube, _square, 1e-3, 1,
    (-0.33333325, -0.28812093, -0.04180524),
    1.5e-9,
    (1.0, 1.464356, 0.5755212, 0.050774075),
)

SIN: Final = Fit(
    np.sin, _same, _cube, _square, 1e-3, 0.786,
    (-0.16666655, 0.0083321575, -0.00019514785),
    8.6e-9,
)

COS: Final = Fit(
    np.cos, lambda x: 1 - x * x / 2, lambda x: x**4, _square, 0, 0.786,
    (0.041666646, -0.0013887312, 2.4432586e-05),
    1.5e-10,
)

SINH: Final = Fit(
    np.sinh, _same, _cube, _square, 1e-3, 1,
    (0.16666667, 0.00833335, 0.0001983616, 2.816951e-06),
    5.4e-9,
)

LOG2_WIDE: Final = Fit(
    lambda s: 2 * np.arctanh(s) / math.log(2), _zero, _same, _square, 1e-3, 0.1716,
    (
        2.8853900817778495, 0.9617966941137029, 0.5770779422771231,
        0.41220926155521703, 0.31990530236488557, 0.28290604760835625,
    ),
    2.8e-14,
)
"""As `LOG`, for powers, whose exponent multiplies its error."""

EXP2_WIDE: Final = Fit(
    np.exp2, _one, _same, _same, -0.5, 0.5,
    (
        0.6931471807045342, 0.24022651066564787, 0.05550410365983906, 0.009618038131625768,
        0.0013333935061045678, 0.00015466756433933513, 1.5196155430568762e-05,
    ),
    4.8e-11,
)
