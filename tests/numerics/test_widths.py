"""Widths: what users may write, what each width holds, and that no two collide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import WidthError
from fewbit.numerics import WIDTHS, Width

TABLE = {
    # width: (bits, qmin, qmax, magnitude)
    "1": (1, -1, 1, 1),
    "1.58": (2, -1, 1, 1),
    "2": (2, -2, 1, 2),
    "3": (3, -4, 3, 4),
    "4": (4, -8, 7, 8),
    "5": (5, -16, 15, 16),
    "6": (6, -32, 31, 32),
    "7": (7, -64, 63, 64),
    "8": (8, -128, 127, 128),
}


def test_the_nine_widths():
    results = {str(w): (w.bits, w.qmin, w.qmax, w.magnitude) for w in WIDTHS}
    assert results == TABLE
    assert [str(w) for w in WIDTHS if w.is_binary] == ["1"]
    assert [str(w) for w in WIDTHS if w.is_ternary] == ["1.58"]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_every_spelling_names_the_same_width(width: Width):
    spellings = [width, width.precision, str(width), np.float64(width.precision)]
    assert all(Width.of(spelling) == width for spelling in spellings)


def test_ternary_and_numpy_integers_are_accepted():
    assert Width.of("ternary") == Width.of(1.58)
    assert Width.of(np.int64(4)) == Width.of(4.0) == Width.of(4)
    assert str(Width.of(4.0)) == "4"


@pytest.mark.parametrize("bad", [9, 0, -1, 1.5, 1.9, 2.5, 16, "abc", "", "9", "1.5", "int4"])
def test_other_widths_are_refused_with_a_hint(bad: float | str):
    with pytest.raises(WidthError) as caught:
        Width.of(bad)
    assert str(bad) in caught.value.what
    assert caught.value.hint is not None
    assert "1.58 (ternary)" in caught.value.hint


@pytest.mark.parametrize("bad", [True, None, float("nan"), float("inf"), [4], 4j])
def test_what_is_no_number_is_refused(bad: object):
    with pytest.raises(WidthError):
        Width.of(bad)  # pyright: ignore[reportArgumentType]


def test_a_width_cannot_be_built_around_the_check():
    with pytest.raises(WidthError, match="9 bits"):
        Width(9)


def test_widths_sort_by_precision_and_never_collide():
    shuffled = [Width.of(p) for p in (8, 2, 1.58, 5, 1, 7, 3, 6, 4)]
    assert sorted(shuffled) == list(WIDTHS)
    assert Width.of(1) < Width.of("ternary") < Width.of(2)
    assert Width.of(1) != Width.of(1.58) != Width.of(2)
    assert len({hash(width) for width in WIDTHS}) == len(WIDTHS)
    assert len({width: str(width) for width in WIDTHS}) == 9


@given(st.sampled_from(WIDTHS), st.integers(-300, 300))
def test_holds_exactly_the_values_in_range(width: Width, value: int):
    values = np.array([1, value, -1])
    expected = width.qmin <= value <= width.qmax and not (width.is_binary and value == 0)
    assert width.holds(values) == expected
