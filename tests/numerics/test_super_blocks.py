"""Scales that are products are found again as such, and others are not taken for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.numerics.super_blocks import split_products


@given(
    rows=st.integers(1, 5),
    supers=st.integers(1, 4),
    together=st.sampled_from([8, 16]),
    least=st.sampled_from([-128, -32, 0]),
    most=st.sampled_from([15, 63, 127]),
    exponent=st.integers(-24, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_are_found_again(
    rows: int, supers: int, together: int, least: int, most: int, exponent: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    mantissas = rng.integers(-2047, 2048, (rows, supers)).astype(np.float64)
    factors = (mantissas * 2.0 ** min(exponent, 4)).astype(np.float16)
    numbers = rng.integers(least, most + 1, (rows, supers * together))
    scale = factors.astype(np.float32).repeat(together, 1) * numbers.astype(np.float32)
    found = split_products(scale, together)
    assert found is not None
    product = found.factors.astype(np.float32).repeat(together, 1) * found.numbers
    np.testing.assert_array_equal(product.astype(np.float32), scale)


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (np.float32(0.1), "no multiple of a step of f16"),
        (np.float32(257 * 2.0**-10), "more than a byte of steps beside the others"),
        (np.float32(np.inf), "no number"),
        (np.float32(np.nan), "no number"),
    ],
)
def test_others_are_no_products(odd: np.float32, why: str) -> None:
    scale = np.full((2, 16), np.float32(2.0**-10))
    assert split_products(scale, 8) is not None
    scale[1, 3] = odd
    assert split_products(scale, 8) is None, why


def test_blocks_are_whole() -> None:
    assert split_products(np.ones((2, 12), np.float32), 8) is None


def test_both_ends_of_a_byte_have_no_common_sign() -> None:
    scale = np.zeros((1, 8), np.float32)
    scale[0, :3] = 128, -128, 1
    assert split_products(scale, 8) is None
    scale[0, 1] = -127
    found = split_products(scale, 8)
    assert found is not None
    assert found.factors.tolist() == [[-1.0]]
    assert found.numbers[0, :3].tolist() == [-128, 127, -1]
