"""Bricks against integers of every width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import WidthError
from fewbit.targets.bitfusion.bricks import cut, digit_count, multiply
from tests.targets.bitfusion.integers import integers


@pytest.mark.parametrize("act", range(1, 9))
@pytest.mark.parametrize("weight", range(1, 9))
def test_products_of_every_pair_of_widths(act: int, weight: int) -> None:
    rng = np.random.default_rng(act * 8 + weight)
    rows, columns = integers(rng, act, (5, 37)), integers(rng, weight, (37, 6))
    result = multiply(cut(rows, act), cut(columns, weight))
    np.testing.assert_array_equal(result, rows.astype(np.int64) @ columns)


@given(st.integers(-128, 127))
def test_digits_have_their_places(value: int) -> None:
    digits = cut(np.array([value]), 8)[:, 0]
    assert sum(int(digit) * 4**place for place, digit in enumerate(digits)) == value
    assert all(0 <= digit <= 3 for digit in digits[:-1])
    assert -2 <= digits[-1] <= 1


def test_how_many_digits() -> None:
    assert [digit_count(bits) for bits in range(1, 9)] == [1, 1, 2, 2, 4, 4, 4, 4]
    with pytest.raises(WidthError):
        digit_count(9)
    with pytest.raises(WidthError, match="do not fit 2 bits"):
        cut(np.array([2]), 2)
