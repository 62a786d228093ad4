from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.numerics.approximations import circular, evaluate
from tests.numerics.approximations.references import SPECIAL, Array, assert_close

floats32 = st.floats(width=32)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_angles(name: str) -> None:
    rng = np.random.default_rng(0)
    x = (10 ** rng.uniform(0, 38, 100_000)).astype(np.float32)
    result = evaluate(getattr(circular, name), x)
    assert np.abs(result).max() <= 1
    near = x < 1e8
    exact = getattr(np, name)(x[near].astype(np.float64))
    assert np.abs(result[near] - exact).max() <= 1e-7


def test_angles_near_multiples_of_a_quarter_keep_their_digits() -> None:
    x = (np.arange(-6000, 6001) * (np.pi / 2)).astype(np.float32)
    wide = x.astype(np.float64)
    assert_close(evaluate(circular.sin, x), np.sin(wide), 2.5e-7)
    assert_close(evaluate(circular.cos, x), np.cos(wide), 2.5e-7)


def check(y: Array, x: Array) -> None:
    exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    result = evaluate(circular.atan2, y, x)
    assert_close(result, exact, 2.5e-7)
    real = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(result[real]), np.signbit(exact[real]))


def test_special_cases_of_atan2() -> None:
    check(*(grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL)))


@given(y=floats32, x=floats32)
def test_any_point(y: float, x: float) -> None:
    check(np.array([y], np.float32), np.array([x], np.float32))
