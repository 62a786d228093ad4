"""Pictures of a search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.search.plot import TICKS, round_ticks


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (17e3, 63e3, [20e3, 30e3, 40e3, 50e3, 60e3]),
        (0.31, 0.99, [0.4, 0.6, 0.8]),
        (-3.0, -1.0, [-3.0, -2.5, -2.0, -1.5, -1.0]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert round_ticks(low, high) == pytest.approx(ticks)


@given(low=st.floats(-1e9, 1e9), extent=st.floats(1e-3, 1e9))
def test_a_few_ticks_lie_on_every_axis(low: float, extent: float) -> None:
    ticks = round_ticks(low, low + extent)
    assert 2 <= len(ticks) <= TICKS + 1
    assert all(low - 1e-6 * extent <= tick <= low + extent * (1 + 1e-6) for tick in ticks)
