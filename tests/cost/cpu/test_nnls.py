"""Least squares without negative coefficients."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.cost.cpu.nnls import nnls


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 12))
def test_known_coefficients_are_found(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.random((3 * size + 5, size))
    x = rng.random(size) * rng.integers(0, 2, size)
    assert np.allclose(nnls(a, a @ x), x, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_best_of_all_that_are_not_negative(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((20, 5)), rng.standard_normal(20)
    x = nnls(a, b)
    assert (x >= 0).all()
    slope = a.T @ (a @ x - b)
    # Kuhn and Tucker: no coefficient can be moved to advantage.
    assert (slope > -1e-7).all()
    assert np.abs(slope[x > 0]).max(initial=0) < 1e-7


def test_a_negative_one_is_zero() -> None:
    assert nnls(np.eye(2), np.array([1.0, -1.0])).tolist() == [1.0, 0.0]
