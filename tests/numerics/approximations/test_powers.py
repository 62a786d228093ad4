from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.numerics.approximations import Number, evaluate, powers
from tests.numerics.approximations.references import SPECIAL, Array, assert_close, every

floats32 = st.floats(width=32)
OTHERS = np.array([2, 3, -2, -3, 0.5, -0.5, 1.5, 2**24 + 2, -7, 1e10], np.float32)


def check(x: Array, y: Array) -> None:
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    assert_close(evaluate(powers.powf, x, y), exact, 6.2e-8)


def test_special_cases_of_pow() -> None:
    values = np.append(SPECIAL, OTHERS)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    check(x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    result = evaluate(powers.powf, x, y)
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(result[real]), np.signbit(expected[real]))


@given(x=floats32, y=floats32)
def test_any_power(x: float, y: float) -> None:
    check(np.array([x], np.float32), np.array([y], np.float32))


@given(x=st.floats(2**-20, 2**20, width=32), y=st.floats(-6, 6, width=32))
def test_powers_that_are_finite(x: float, y: float) -> None:
    check(np.array([x], np.float32), np.array([y], np.float32))


@pytest.mark.parametrize("n", [-64, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 31, 64])
def test_whole_exponents(n: int) -> None:
    x = every(399_989)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), n)

    def power(v: Number) -> Number:
        return powers.power_of_integer(v, n)

    assert_close(evaluate(power, x), exact, 1.3e-7)


def test_cubes_have_exact_roots() -> None:
    n = np.arange(-200, 201, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(powers.cbrt, n * n * n), n)
