"""Floating point by integers against numpy's, to the nearest; other modes by their definition."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.simulators.riscv.softfloat import DOUBLE, RDN, RMM, RNE, RTZ, RUP, SINGLE, Float

FORMATS = {SINGLE: (np.uint32, np.float32), DOUBLE: (np.uint64, np.float64)}


def value(f: Float, bits: int) -> np.floating:
    whole, real = FORMATS[f]
    return np.array([bits], whole).view(real)[0]


def pattern(f: Float, number: np.floating) -> int:
    whole, real = FORMATS[f]
    if np.isnan(number):
        return f.nan
    return int(np.array([number], real).view(whole)[0])


def bits_of(f: Float) -> st.SearchStrategy[int]:
    edges = (0, 1, f.infinity - 1, f.infinity, f.nan, (1 << f.fraction) - 1, 1 << f.fraction)
    edges = (*edges, *(edge | f.sign for edge in edges))
    near = st.integers(-40, 40).map(lambda e: f.pack(False, 3, e, RNE))
    return st.sampled_from(edges) | near | st.integers(0, (1 << f.bits) - 1)


@pytest.mark.parametrize("f", [SINGLE, DOUBLE])
@given(st.data())
def test_to_the_nearest_as_numpy(f: Float, data: st.DataObject) -> None:
    a, b = data.draw(bits_of(f)), data.draw(bits_of(f))
    x, y = value(f, a), value(f, b)
    with np.errstate(all="ignore"):
        assert f.add(a, b, RNE) == pattern(f, x + y)
        assert f.multiply(a, b, RNE) == pattern(f, x * y)
        assert f.divide(a, b, RNE) == pattern(f, x / y)
        assert f.root(a, RNE) == pattern(f, np.sqrt(x))
        assert f.less(a, b) == bool(x < y)
        assert f.equal(a, b) == bool(x == y)
        assert DOUBLE.convert(SINGLE.convert(a, DOUBLE, RNE), SINGLE, RNE) == pattern(f, x) or (
            f is DOUBLE
        )


@given(bits_of(DOUBLE), bits_of(DOUBLE), bits_of(DOUBLE))
def test_products_and_sums_are_rounded_once(a: int, b: int, c: int) -> None:
    x, y, z = (float(value(DOUBLE, bits)) for bits in (a, b, c))
    if not all(map(np.isfinite, (x, y, z))):
        return
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return
    for mode in (RNE, RTZ, RDN, RUP, RMM):
        e = DOUBLE.lowest * 2 - 100
        scaled = exact / Fraction(2) ** e
        assert scaled.denominator == 1
        wanted = DOUBLE.pack(exact < 0, abs(scaled.numerator), e, mode)
        assert DOUBLE.fma(a, b, c, mode) == wanted


@pytest.mark.parametrize("f", [SINGLE, DOUBLE])
@given(st.data())
def test_modes_lie_around_the_exact_value(f: Float, data: st.DataObject) -> None:
    finite = bits_of(f).filter(lambda bits: not f.is_nan(bits) and not f.is_infinite(bits))
    a, b = data.draw(finite), data.draw(finite)
    exact = Fraction(float(value(f, a))) + Fraction(float(value(f, b)))
    down, up, zero = (float(value(f, f.add(a, b, mode))) for mode in (RDN, RUP, RTZ))
    assert down == -np.inf or Fraction(down) <= exact
    assert up == np.inf or Fraction(up) >= exact
    assert abs(Fraction(zero)) <= abs(exact)
    assert zero in (down, up)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2.5, [2, 2, 2, 3, 3]),
        (-2.5, [-2, -2, -3, -2, -3]),
        (-0.25, [0, 0, -1, 0, 0]),
        (3.5, [4, 3, 3, 4, 4]),
    ],
)
def test_whole_numbers_in_every_mode(number: float, expected: list[int]) -> None:
    bits = pattern(DOUBLE, np.float64(number))
    assert [DOUBLE.to_integer(bits, -100, 100, mode) for mode in range(5)] == expected


def test_whole_numbers_stop_at_the_ends() -> None:
    low, high = -(1 << 31), (1 << 31) - 1
    for number, wanted in (
        (3e9, high),
        (-3e9, low),
        (np.inf, high),
        (-np.inf, low),
        (np.nan, high),
    ):
        assert SINGLE.to_integer(pattern(SINGLE, np.float32(number)), low, high, RTZ) == wanted


def test_the_smaller_and_the_larger() -> None:
    minus, plus = SINGLE.sign, 0
    assert SINGLE.smaller(plus, minus) == SINGLE.smaller(minus, plus) == minus
    assert SINGLE.larger(plus, minus) == SINGLE.larger(minus, plus) == plus
    assert SINGLE.smaller(SINGLE.nan, 5) == SINGLE.larger(5, SINGLE.nan) == 5
    assert SINGLE.smaller(SINGLE.nan | 1, SINGLE.nan | 2) == SINGLE.nan
