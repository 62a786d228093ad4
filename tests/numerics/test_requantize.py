"""Requantization against exact fractions, with ties, saturation and channels."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import Error, ShapeError, WidthError
from fewbit.numerics import (
    WIDTHS,
    FixedPoint,
    Width,
    fixed_point,
    requantize,
    requantize_fixed,
)

widths = st.sampled_from(WIDTHS)
accumulators = st.integers(-(2**31), 2**31 - 1) | st.integers(-300, 300)
multipliers = (
    st.floats(width=32, allow_nan=False, allow_infinity=False)
    | st.floats(2**-16, 2, width=32)
    | st.integers(-40, 40).map(lambda e: 2.0**e)
)


def clamp(value: int, width: Width, zero_point: int | None = None) -> int:
    if width.is_binary:
        return 1 if value >= 0 else -1
    return min(max(value + (zero_point or 0), width.qmin), width.qmax)


def round_exactly(value: Fraction, width: Width, zero_point: int | None = None) -> int:
    """Exact: Python rounds fractions half to even. One bit keeps the sign of the fraction."""
    if width.is_binary:
        return 1 if value >= 0 else -1
    return clamp(round(value), width, zero_point)


@settings(deadline=None, max_examples=400)
@given(widths, st.lists(accumulators, min_size=1, max_size=8), multipliers)
def test_fixed_point_is_exact(width: Width, acc: list[int], multiplier: float):
    found = requantize_fixed(acc, fixed_point(multiplier), width)
    assert found.dtype == np.int8
    assert found.tolist() == [round_exactly(a * Fraction(multiplier), width) for a in acc]


@settings(deadline=None, max_examples=400)
@given(widths, st.lists(accumulators, min_size=1, max_size=8), multipliers)
def test_float_multiplies_in_float32(width: Width, acc: list[int], multiplier: float):
    result = requantize(acc, multiplier, width)
    for a, u in zip(acc, result.tolist(), strict=True):
        if width.is_binary:
            assert u == round_exactly(a * Fraction(multiplier), width)
            continue
        with np.errstate(over="ignore"):
            product = float(np.float32(float(np.float32(a)) * multiplier))
        assert u == clamp(round(min(max(product, -1e6), 1e6)), width)


@settings(deadline=None)
@given(
    st.integers(2, 8),
    st.lists(st.integers(-(2**24), 2**24), min_size=1, max_size=8),
    st.integers(-30, 3),
    st.data(),
)
def test_both_agree_where_float_is_exact(
    bits: int, acc: list[int], exponent: int, data: st.DataObject
):
    width = Width.of(bits)
    zero_point = data.draw(st.none() | st.integers(width.qmin, width.qmax))
    multiplier = 2.0**exponent
    expected = [round_exactly(a * Fraction(multiplier), width, zero_point) for a in acc]
    assert requantize(acc, multiplier, bits, zero_point).tolist() == expected
    assert requantize_fixed(acc, fixed_point(multiplier), bits, zero_point).tolist() == expected


def test_ties_go_to_the_even_neighbour():
    acc = np.arange(-7, 8, 2)
    expected = [-4, -2, -2, 0, 0, 2, 2, 4]
    assert requantize(acc, 0.5, 8).tolist() == expected
    assert requantize_fixed(acc, fixed_point(0.5), 8).tolist() == expected


def test_one_bit_zero_is_plus_one_and_the_smallest_multiplier_keeps_the_sign():
    acc = [-1, 0, 1]
    for multiplier in (1.0, 1e-45):
        assert requantize(acc, multiplier, 1).tolist() == [-1, 1, 1]
        assert requantize_fixed(acc, fixed_point(multiplier), 1).tolist() == [-1, 1, 1]


ENDS = {
    3e38: [-128, 127],
    2.0**-24: [-128, 127],
    2.0**-25: [-64, 64],
    1.5 * 2.0**-32: [-1, 1],
    2.0**-32: [0, 0],
    2.0**-33: [0, 0],
    0.0: [0, 0],
}


@pytest.mark.parametrize("multiplier", ENDS)
def test_the_ends_of_int32(multiplier: float):
    acc = [-(2**31), 2**31 - 1]
    assert requantize(acc, multiplier, 8).tolist() == ENDS[multiplier]
    assert requantize_fixed(acc, fixed_point(multiplier), 8).tolist() == ENDS[multiplier]


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_multipliers_per_channel(axis: int):
    acc = np.random.default_rng(0).integers(-1000, 1000, (3, 4, 5)).astype(np.int32)
    channels = acc.shape[axis]
    multiplier = np.linspace(0.01, 0.2, channels).astype(np.float32)
    result = requantize(acc, multiplier, 8, axis=axis)
    fixed = requantize_fixed(acc, fixed_point(multiplier), 8, axis=axis)
    for i in range(channels):
        one = acc.take(i, axis)
        assert np.array_equal(result.take(i, axis), requantize(one, multiplier[i], 8))
        alone = requantize_fixed(one, fixed_point(multiplier[i]), 8)
        assert np.array_equal(fixed.take(i, axis), alone)


@given(multipliers)
def test_fixed_point_holds_the_float_exactly_where_it_matters(multiplier: float):
    fixed = fixed_point(multiplier)
    assert fixed.multiplier.dtype == fixed.shift.dtype == np.int32
    assert 0 <= int(fixed.shift) <= 62
    if multiplier == 0 or 2**-32 <= abs(multiplier) < 2**31:
        assert Fraction(int(fixed.multiplier), 2 ** int(fixed.shift)) == Fraction(multiplier)


def test_what_cannot_be_requantized():
    acc = np.zeros((2, 3), np.int32)
    with pytest.raises(ShapeError, match="multipliers of shape"):
        requantize(acc, [0.5, 0.5], 8)
    with pytest.raises(ShapeError, match="axis 2"):
        requantize_fixed(acc, fixed_point([0.5, 0.5]), 8, axis=2)
    with pytest.raises(WidthError, match="int32"):
        requantize([2**31], 0.5, 8)
    with pytest.raises(WidthError, match="must hold integers"):
        requantize([0.5], 0.5, 8)
    with pytest.raises(WidthError, match="zero point 8 does not fit 4 bits"):
        requantize(acc, 0.5, 4, 8)
    with pytest.raises(WidthError, match="cannot be asymmetric"):
        requantize(acc, 0.5, 1, 0)
    with pytest.raises(Error, match="not finite"):
        fixed_point(float("nan"))
    one = np.ones((), np.int32)
    with pytest.raises(WidthError, match="shift"):
        FixedPoint(one, one * 63)
    with pytest.raises(ShapeError, match="shifts of shape"):
        FixedPoint(one, np.ones(2, np.int32))
