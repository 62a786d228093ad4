from __future__ import annotations

import numpy as np
import pytest

from fewbit.numerics.approximations import tables
from fewbit.numerics.approximations.fits import Coefficients, Fit

FITS = {name: fit for name, fit in vars(tables).items() if isinstance(fit, Fit)}


def _as_used(name: str) -> tuple[Coefficients, Coefficients]:
    """Rounded to float32, unless the formula computes in float64."""
    fit = FITS[name]
    if name.endswith("_WIDE"):
        return fit.numerator, fit.denominator
    return _to_float32(fit.numerator), _to_float32(fit.denominator)


def _to_float32(coefficients: Coefficients) -> Coefficients:
    return tuple(float(np.float32(value)) for value in coefficients)


@pytest.mark.parametrize("name", FITS)
def test_coefficients_are_as_close_as_they_say(name: str) -> None:
    fit = FITS[name]
    assert 0.9 * fit.error < fit.largest_error(*_as_used(name)) <= fit.error


@pytest.mark.parametrize("name", FITS)
def test_coefficients_are_found_again(name: str) -> None:
    """A fresh fit is not better than rounding of the coefficients explains."""
    fit = FITS[name]
    numerator, denominator = fit.refit()
    rounding = 1e-15 if name.endswith("_WIDE") else 6e-8
    assert fit.largest_error(numerator, denominator) <= fit.error * 1.05
    x = fit.points()
    v = fit.variable(x)
    stored, fresh = (
        np.polyval(upper[::-1], v) / np.polyval(lower[::-1], v)
        for upper, lower in ((fit.numerator, fit.denominator), (numerator, denominator))
    )
    share = np.abs(fit.factor(x) / fit.function(x))
    assert np.max(np.abs(stored - fresh) * share) <= 2 * fit.error + rounding
