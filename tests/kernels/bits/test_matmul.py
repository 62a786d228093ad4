"""Products that count bits are exact, and their outputs have the bits that numpy gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError, WidthError
from fewbit.kernels import BitMatmul, Isa
from tests.kernels.integer.epilogue import Wanted, wanted
from tests.kernels.integer.test_matmul import BARE, check_pair
from tests.kernels.machine import BIT_PAIRS
from tests.kernels.test_matmul import sizes

SCALED = Wanted("f32", True, True, True, False, 3)


@settings(max_examples=60)
@given(
    size=sizes().filter(lambda size: size[2] > 0),
    want=wanted(),
    pair=st.sampled_from(BIT_PAIRS),
    seed=st.integers(0, 2**32),
    gap=st.integers(0, 2),
)
@example((100, 140, 4099), BARE, (1, 1), 0, 0)
@example((100, 70, 2111), SCALED, (2, 1), 0, 1)
@example((1, 1, 1), BARE, (1, 1), 0, 0)
def test_is_the_product(
    isa: Isa,
    size: tuple[int, int, int],
    want: Wanted,
    pair: tuple[int, int],
    seed: int,
    gap: int,
) -> None:
    check_pair(BitMatmul(isa, want.output, *pair), size, want, seed, gap, *pair)


def test_rows_as_long_as_there_is_room(isa: Isa) -> None:
    kernel = BitMatmul(isa, "i32", 1, 1)
    longest = (1 << 19) - 32
    assert kernel.fits(longest)
    assert not kernel.fits(longest + 1)
    check_pair(kernel, (2, 3, longest), BARE, 0, 0, 1, 1)
    with pytest.raises(UnsupportedError, match="524257 numbers"):
        kernel.pack(np.ones((1, longest + 1), np.int8))


def test_zero_is_no_bit() -> None:
    with pytest.raises(WidthError):
        BitMatmul(Isa.of("x86-64-v3")).pack(np.zeros((1, 32), np.int8))
