"""Convolutions that count bits: exact, also where a kernel is partly outside the image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.kernels import BitConv2d, Isa
from tests.kernels.convolution import Case, cases
from tests.kernels.integer.epilogue import Wanted, wanted
from tests.kernels.integer.images import check_pair
from tests.kernels.machine import BIT_PAIRS

EXTREME = Wanted("i32", False, False, False, True, 1)


@pytest.mark.on_few
@settings(max_examples=60)
@given(
    case=cases(st.integers(1, 80)),
    want=wanted(),
    pair=st.sampled_from(BIT_PAIRS),
    seed=st.integers(0, 2**32),
)
def test_is_the_convolution(
    isa: Isa, case: Case, want: Wanted, pair: tuple[int, int], seed: int
) -> None:
    check_pair(BitConv2d(isa, want.output, *pair), case, want, seed, *pair)


@pytest.mark.on_few
@pytest.mark.parametrize("pair", [(1, 1), (2, 1)])
def test_blocks_end_within_lines(isa: Isa, pair: tuple[int, int]) -> None:
    """Lines longer than a block, blocks of several lines, and images that end within one."""
    wide = Case(2, 5, 210, 70, 33, 3, 3, (1, 1), (1, 1, 1, 1), (1, 1), 1, False, False, False, 0)
    small = Case(3, 6, 5, 64, 70, 3, 3, (1, 1), (2, 2, 2, 2), (1, 1), 1, False, False, False, 0)
    large = Case(1, 9, 60, 400, 17, 3, 2, (2, 1), (1, 0, 1, 0), (2, 3), 1, False, False, False, 0)
    for case in (wide, small, large):
        kernel = BitConv2d(isa, "i32", *pair)
        assert kernel.fits(case.c, case.kh, case.kw, case.w, case.stride[0], case.dilation[0])
        check_pair(kernel, case, EXTREME, 0, *pair)


def test_every_tap_outside(isa: Isa) -> None:
    case = Case(1, 2, 2, 40, 20, 2, 2, (1, 1), (4, 4, 4, 4), (1, 1), 1, False, False, False, 0)
    check_pair(BitConv2d(isa, "i32", 1, 1), case, EXTREME, 0, 1, 1)


def test_what_has_no_room_is_refused() -> None:
    kernel = BitConv2d(Isa.of("x86-64-v4"), "i32", 1, 1)
    assert kernel.fits(64, 3, 3, 224)
    assert not kernel.fits(64, 3, 3, 2000)
    assert not kernel.fits(64, 3, 3, 224, dilation_h=20)
    with pytest.raises(UnsupportedError, match="9x9"):
        kernel.pack(np.ones((1, 64, 9, 9), np.int8))
