"""Convolutions, dense and grouped, on every processor that this machine can execute."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import Conv2d, Isa
from tests.kernels.convolution import Case, cases, check


@settings(max_examples=60)
@given(case=cases(st.integers(1, 40)), seed=st.integers(0, 2**32))
def test_is_the_convolution(isa: Isa, case: Case, seed: int) -> None:
    check(isa, case, Conv2d, seed)


@settings(max_examples=15)
@given(case=cases(st.integers(200, 1100)), seed=st.integers(0, 2**32))
def test_many_channels(isa: Isa, case: Case, seed: int) -> None:
    check(isa, case, Conv2d, seed)


def test_more_taps_than_a_table_holds(isa: Isa) -> None:
    """conv1d is an image of one line."""
    case = Case(2, 1, 400, 3, 33, 1, 300, (1, 2), (0, 20, 0, 20), (1, 1), 1, True, True, False, 0)
    check(isa, case, Conv2d, 0)


def test_more_edges_than_there_is_room_for_copies(isa: Isa) -> None:
    """Every pixel of a narrow image is at an edge."""
    case = Case(1, 70, 3, 6, 20, 5, 7, (1, 1), (2, 3, 2, 3), (1, 1), 1, True, True, True, 0)
    check(isa, case, Conv2d, 0)
