"""Polynomial and rational approximations of functions: how `tables.py` was computed.

Both are weighted least squares over Chebyshev points, which is linear and needs no starting point.
The weights make errors relative, and are raised where the error is largest (Lawson's iteration),
so that the largest error, not the mean, becomes small. A ratio becomes linear by multiplying with
its denominator, of which the last round gives an estimate to divide by. Coefficients computed on
different machines differ in their last digits, and programs must not: so they are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Function: TypeAlias = Callable[[Array], Array]
Coefficients: TypeAlias = tuple[float, ...]
"""Coefficients of the powers from 0 upwards."""

POINTS = 2000
ROUNDS = 80


def polynomial(x: Array, coefficients: Coefficients) -> Array:
    total = np.zeros_like(x)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _least_squares(columns: Array, wanted: Array) -> Array:
    return np.asarray(np.linalg.lstsq(columns, wanted, rcond=None)[0], np.float64)


@dataclass(frozen=True)
class Fit:
    """function(x) = base(x) + factor(x) · P(v) / Q(v), v = variable(x), for low <= x <= high.

    Q begins with 1; it is 1 where `denominator` is left out. The relative error is at most `error`.
    """

    function: Function
    base: Function
    factor: Function
    variable: Function
    low: float
    high: float
    numerator: Coefficients
    error: float
    denominator: Coefficients = (1.0,)

    def points(self) -> Array:
        angles = (np.arange(POINTS) + 0.5) * np.pi / POINTS
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        return middle + half * np.cos(angles)

    def largest_error(self, numerator: Coefficients, denominator: Coefficients) -> float:
        return float(self._errors(self.points(), numerator, denominator).max())

    def _errors(self, x: Array, numerator: Coefficients, denominator: Coefficients) -> Array:
        v, exact = self.variable(x), self.function(x)
        ratio = polynomial(v, numerator) / polynomial(v, denominator)
        return np.abs((self.base(x) + self.factor(x) * ratio - exact) / exact)

    def refit(self) -> tuple[Coefficients, Coefficients]:
        """Compute coefficients of the same degrees afresh."""
        x = self.points()
        v, exact, base = self.variable(x), self.function(x), self.base(x)
        upper, lower = len(self.numerator), len(self.denominator)
        powers = v[:, None] ** np.arange(max(upper, lower))
        columns = np.hstack(
            [
                self.factor(x)[:, None] * powers[:, :upper],
                (base - exact)[:, None] * powers[:, 1:lower],
            ]
        )
        weight, denominator = np.ones_like(x), (1.0,)
        best = (np.inf, self.numerator, self.denominator)
        for _ in range(ROUNDS):
            scale = weight / np.abs(exact * polynomial(v, denominator))
            scaled = columns * scale[:, None]
            sizes = np.linalg.norm(scaled, axis=0)
            solved = _least_squares(scaled / sizes, (exact - base) * scale) / sizes
            numerator = tuple(map(float, solved[:upper]))
            denominator = (1.0, *map(float, solved[upper:]))
            errors = self._errors(x, numerator, denominator)
            best = min(best, (float(errors.max()), numerator, denominator))
            weight = weight * np.sqrt(errors / errors.max() + 1e-3)
            weight /= weight.max()
        return best[1], best[2]
