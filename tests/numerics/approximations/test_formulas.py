from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.numerics.approximations import evaluate, formulas
from tests.numerics.approximations.references import REFERENCES, assert_close, every

floats32 = st.floats(width=32)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_whole_range_of_float32(name: str) -> None:
    reference, x = REFERENCES[name], every(39_989)
    with np.errstate(all="ignore"):
        exact = reference.exact(x.astype(np.float64))
    assert_close(
        evaluate(reference.formula, x), exact, reference.tolerance, ~(np.abs(x) > reference.reach)
    )


@pytest.mark.parametrize("name", REFERENCES)
@given(x=floats32)
def test_any_number(name: str, x: float) -> None:
    reference, inputs = REFERENCES[name], np.array([x], np.float32)
    with np.errstate(all="ignore"):
        exact = reference.exact(inputs.astype(np.float64))
    checked = ~(np.abs(inputs) > reference.reach)
    assert_close(evaluate(reference.formula, inputs), exact, reference.tolerance, checked)


ODD = ["asin", "atan", "atanh", "cbrt", "erf", "expm1", "log1p", "sin", "sinh", "tan", "tanh"]


@pytest.mark.parametrize("name", ODD)
def test_zero_keeps_its_sign(name: str) -> None:
    result = evaluate(REFERENCES[name].formula, np.array([0.0, -0.0], np.float32))
    assert np.signbit(result).tolist() == [False, True]
    assert not result.any()


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_what_saturates_never_goes_beyond_one(name: str) -> None:
    x = np.linspace(3, 10, 1_000_003, dtype=np.float32)
    result = evaluate(REFERENCES[name].formula, x)
    assert result.max() == 1
    assert result[-1] == 1


def test_the_edges_of_exp() -> None:
    largest, smallest = np.float32(88.72283), np.float32(-87.33654)
    x = np.array([largest, np.nextafter(largest, np.float32(100)), smallest, -87.4, -1e30])
    result = evaluate(formulas.exp, x.astype(np.float32))
    assert np.isfinite(result[0])
    assert result[1] == np.inf
    assert result[2] > 0
    assert result[3:].tolist() == [0, 0]


def test_powers_of_two_are_exact() -> None:
    n = np.arange(-126, 128).astype(np.float32)
    power = evaluate(formulas.exp2, n)
    np.testing.assert_array_equal(power, np.ldexp(1.0, n.astype(int)))
    np.testing.assert_array_equal(evaluate(formulas.log2, power), n)
