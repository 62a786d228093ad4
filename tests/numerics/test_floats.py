"""Float functions between layers, against float64 and against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.numerics import floats

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
UNIT = 2.0**-23


def rows(seed: int, shape: tuple[int, ...], scale: float = 3.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def assert_near(found: np.ndarray, exact: np.ndarray, units: float) -> None:
    """Compare with float64, in units in the last place of the largest number."""
    assert found.dtype == np.float32
    assert np.abs(found - exact).max() <= units * UNIT * np.abs(exact).max()


@pytest.mark.parametrize("length", [1, 2, 7, 64, 1000])
def test_softmax_is_near_the_true_one(length: int) -> None:
    x = rows(length, (5, length))
    wide = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert_near(floats.softmax(x, 1), wide / wide.sum(1, keepdims=True), 3)


def test_softmax_of_minus_infinity() -> None:
    x = np.array([[-np.inf, 0.0], [-np.inf, -np.inf]], np.float32)
    y = floats.softmax(x, 1)
    assert y[0].tolist() == [0.0, 1.0]
    assert np.isnan(y[1]).all()


@pytest.mark.parametrize("length", [1, 3, 64, 515])
def test_norms_are_near_the_true_ones(length: int) -> None:
    x, weight, bias = rows(length, (4, length)), rows(1, (length,)), rows(2, (length,))
    wide = x.astype(np.float64)
    centered = wide - wide.mean(1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    if length > 1:  # alone, an element is its own mean, and 0 / √eps magnifies what is left
        exact = centered / deviation * weight + bias
        assert_near(floats.layer_norm(x, -1, weight, bias, 1e-5), exact, 6)
    square = np.sqrt((wide**2).mean(1, keepdims=True) + 1e-5)
    assert_near(floats.rms_norm(x, -1, weight, 1e-5), wide / square * weight, 4)


def test_batch_norm_is_near_the_true_one() -> None:
    x = rows(0, (2, 3, 5))
    weight, bias, mean = (rows(i, (1, 3, 1)) for i in (1, 2, 3))
    variance = np.abs(rows(4, (1, 3, 1))) + 1
    deviation = np.sqrt(variance.astype(np.float64) + 1e-5)
    exact = (x.astype(np.float64) - mean) / deviation * weight + bias
    assert_near(floats.batch_norm(x, weight, bias, mean, variance, 1e-5), exact, 0.5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_computed_in_float32(dtype: Any) -> None:
    x: np.ndarray = rows(0, (3, 9)).astype(dtype)
    assert np.array_equal(floats.softmax(x, 1), floats.softmax(x.astype(np.float32), 1))


def test_float64_stays() -> None:
    x = rows(0, (3, 9)).astype(np.float64)
    exact = np.exp(x - x.max(1, keepdims=True))
    assert floats.softmax(x, 1).dtype == np.float64
    np.testing.assert_allclose(floats.softmax(x, 1), exact / exact.sum(1, keepdims=True), 1e-15)


@given(st.permutations(list(range(40))), st.integers(0, 99))
def test_the_order_of_a_sum_is_free(order: list[int], seed: int) -> None:
    x = rows(seed, (1, 40), 100.0)
    assert np.array_equal(floats.sum_over(x, 1), floats.sum_over(x[:, order], 1))


def rounded_once(a: float, b: float, c: float) -> np.float32:
    """Return a·b + c by exact arithmetic; of two neighbours the nearer, or the even one."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return np.float32(a * b + c)
    guess = np.float32(float(exact))
    around = [
        np.nextafter(guess, np.float32(-np.inf)),
        guess,
        np.nextafter(guess, np.float32(np.inf)),
    ]
    if any(math.isinf(each) for each in around):
        return guess
    return min(around, key=lambda n: (abs(Fraction(float(n)) - exact), int(n.view(np.int32)) & 1))


@given(FLOATS, FLOATS, FLOATS)
def test_fused_multiply_add_rounds_once(a: float, b: float, c: float) -> None:
    given_ = [np.array([v], np.float32) for v in (a, b, c)]
    expected = rounded_once(a, b, c)
    assert floats.fused_multiply_add(*given_)[0] == expected


@given(st.integers(1, 2**23 - 1), st.integers(1, 2**12), st.booleans())
def test_fused_multiply_add_at_ties(mantissa: int, other: int, below: bool) -> None:
    """Sums that end half-way between two floats, but for something far below."""
    c = float(np.float32(1.0 + mantissa * UNIT))
    a = float(np.float32(2.0**-12 + other * 2.0**-60))
    b = float(np.float32(2.0**-12 * (1.0 - 2 * below * UNIT)))
    given_ = [np.array([v], np.float32) for v in (a, b, c)]
    assert floats.fused_multiply_add(*given_)[0] == rounded_once(a, b, c)


def test_matrices_are_multiplied_in_order() -> None:
    a, b = rows(0, (2, 3, 50)), rows(1, (2, 50, 4))
    found = floats.multiply_matrices(a, b)
    total = np.float32(0)
    for k in range(50):
        total = rounded_once(float(a[1, 2, k]), float(b[1, k, 3]), float(total))
    assert found[1, 2, 3] == total
    assert_near(found, a.astype(np.float64) @ b.astype(np.float64), 50)
