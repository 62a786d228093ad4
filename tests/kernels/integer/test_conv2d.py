"""Convolutions of bytes, dense and grouped, on every processor that this machine can execute."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import IntegerConv2d, Isa
from fewbit.kernels.integer.fields import takes_unsigned
from fewbit.kernels.integer.strip import takes_strips
from tests.kernels.convolution import Case, cases
from tests.kernels.integer.epilogue import Wanted, wanted
from tests.kernels.integer.images import check

ANY = Wanted("f32", True, True, False, False, 7)
EXTREME = Wanted("i32", False, False, False, True, 1)


@pytest.mark.on_few
@settings(max_examples=80)
@given(case=cases(st.integers(1, 40)), want=wanted(), seed=st.integers(0, 2**32))
def test_is_the_convolution(isa: Isa, case: Case, want: Wanted, seed: int) -> None:
    check(isa, case, want, IntegerConv2d, seed)


@pytest.mark.on_few
@settings(max_examples=10)
@given(case=cases(st.integers(200, 600)), want=wanted(), seed=st.integers(0, 2**32))
def test_many_channels(isa: Isa, case: Case, want: Wanted, seed: int) -> None:
    check(isa, case, want, IntegerConv2d, seed)


@pytest.mark.on_few
@settings(max_examples=40)
@given(case=cases(st.integers(1, 80)), want=wanted(), seed=st.integers(0, 2**32))
def test_without_negative_numbers(isa: Isa, case: Case, want: Wanted, seed: int) -> None:
    if takes_unsigned(isa, 8):
        check(isa, case, replace(want, unsigned=True), IntegerConv2d, seed)


@pytest.mark.on_few
@settings(max_examples=60)
@given(
    case=cases(st.integers(1, 80)),
    want=wanted(),
    bits=st.integers(1, 7),
    seed=st.integers(0, 2**32),
)
def test_few_bits(isa: Isa, case: Case, want: Wanted, bits: int, seed: int) -> None:
    check(isa, case, want, IntegerConv2d, seed, bits)


@pytest.mark.on_few
@pytest.mark.parametrize("bits", [1, 3, 4])
def test_few_bits_cut(isa: Isa, bits: int) -> None:
    """Sums that are cut: by channels, and by taps; and taps with more steps than there is room."""
    many = Case(1, 3, 2, 4099, 70, 2, 2, (1, 1), (1, 1, 1, 1), (1, 1), 1, True, True, False, 0)
    line = Case(2, 1, 400, 5, 133, 1, 300, (1, 2), (0, 20, 0, 20), (1, 1), 1, True, True, False, 0)
    deep = Case(1, 7, 6, 1100, 70, 3, 3, (1, 1), (1, 1, 1, 1), (1, 1), 1, True, True, False, 0)
    for case in (many, line, deep):
        check(isa, case, ANY, IntegerConv2d, 0, bits)


def test_more_channels_than_zeros(isa: Isa) -> None:
    case = Case(1, 3, 2, 4099, 70, 2, 2, (1, 1), (1, 1, 1, 1), (1, 1), 1, True, True, False, 0)
    check(isa, case, ANY, IntegerConv2d, 0)
    check(isa, case, EXTREME, IntegerConv2d, 0)


def test_more_taps_than_a_table_holds(isa: Isa) -> None:
    """conv1d is an image of one line. With fewer channels than a step, rows are widened."""
    for c in (3, 5):
        case = Case(
            2, 1, 400, c, 133, 1, 300, (1, 2), (0, 20, 0, 20), (1, 1), 1, True, True, False, 0
        )
        check(isa, case, ANY, IntegerConv2d, 0)
        check(isa, case, EXTREME, IntegerConv2d, 0)


def test_every_pixel_at_an_edge(isa: Isa) -> None:
    case = Case(1, 70, 3, 6, 20, 5, 7, (1, 1), (2, 3, 2, 3), (1, 1), 1, True, True, True, 0)
    check(isa, case, ANY, IntegerConv2d, 0)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(
    ("h", "w", "c", "kernel", "stride"),
    [
        (9, 230, 3, (3, 3), (1, 1)),  # lines that are cut
        (3, 400, 40, (3, 3), (1, 2)),  # lines that there is no room for
        (40, 6, 16, (3, 3), (1, 1)),  # many lines at once
        (30, 40, 3, (7, 7), (2, 2)),  # fewer lines than a block of rows has, for want of room
        (49, 10, 1, (10, 4), (2, 2)),
        (12, 33, 5, (1, 3), (1, 5)),  # pixels that share nothing
        (12, 30, 2, (1, 1), (1, 1)),  # less than a step
    ],
)
def test_strips(
    isa: Isa, h: int, w: int, c: int, kernel: tuple[int, int], stride: tuple[int, int], bits: int
) -> None:
    assert takes_strips(*kernel, c, isa) or isa.step <= c
    pad = (kernel[0] // 2, kernel[1] // 2, kernel[0] // 2, kernel[1] // 2)
    case = Case(2, h, w, c, 18, *kernel, stride, pad, (1, 1), 1, True, True, False, 0)
    check(isa, case, ANY, IntegerConv2d, 0, bits)
    check(isa, case, replace(ANY, output="steps"), IntegerConv2d, 0, bits)
    if takes_unsigned(isa, bits):
        check(isa, case, replace(EXTREME, unsigned=True), IntegerConv2d, 0, bits)
