"""Rotation by block Hadamard matrices: orthonormal, its own inverse, and the definition's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.numerics.hadamard import check_rotation, rotate

BLOCKS = (2, 4, 32, 64, 128, 512)


def sylvester(block: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Build the matrix by its definition: [[H, H], [H, -H]]."""
    matrix = np.ones((1, 1))
    while len(matrix) < block:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.sqrt(block)


@pytest.mark.parametrize("block", BLOCKS)
def test_it_is_the_matrix_of_sylvester(block: int) -> None:
    np.testing.assert_allclose(rotate(np.eye(block), block), sylvester(block), rtol=1e-7)
    x = np.random.default_rng(block).standard_normal((3, 2 * block)).astype(np.float32)
    expected = x.reshape(3, 2, block) @ sylvester(block)
    np.testing.assert_allclose(rotate(x, block), expected.reshape(x.shape), rtol=1e-4, atol=1e-5)


@given(
    block=st.sampled_from(BLOCKS),
    blocks=st.integers(1, 3),
    rows=st.integers(0, 3),
    seed=st.integers(0, 2**32),
)
def test_it_is_orthonormal_and_its_own_inverse(
    block: int, blocks: int, rows: int, seed: int
) -> None:
    x = np.random.default_rng(seed).standard_normal((rows, block * blocks)).astype(np.float32)
    y = rotate(x, block)
    assert y.dtype == np.float32
    assert y.shape == x.shape
    lengths = [np.linalg.norm(each.astype(np.float64), axis=-1) for each in (x, y)]
    np.testing.assert_allclose(*lengths, rtol=1e-6)
    np.testing.assert_allclose(rotate(y, block), x, atol=1e-5)


def test_a_matmul_does_not_change() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 192)), rng.standard_normal((7, 192))
    np.testing.assert_allclose(rotate(x, 64) @ rotate(w, 64).T, x @ w.T, atol=1e-6)


def test_an_outlier_is_spread_over_its_block() -> None:
    x = np.zeros((1, 128), np.float32)
    x[0, 70] = 8
    y = rotate(x, 64)
    np.testing.assert_array_equal(np.abs(y), np.repeat([[0, 1]], 64).reshape(1, 128))


def test_without_a_block_nothing_changes() -> None:
    x = np.ones(3, np.float32)
    assert rotate(x, None) is x


def test_what_cannot_be_rotated_is_refused() -> None:
    with pytest.raises(UsageError, match="blocks of 48") as error:
        rotate(np.ones(96), 48)
    assert "64" in str(error.value.hint)
    with pytest.raises(
        ShapeError, match="blocks of 64 do not divide the reduction dimension K = 80"
    ) as error:
        check_rotation(64, (8, 80))
    assert "blocks of 16" in str(error.value.hint)
    with pytest.raises(ShapeError, match="K = 25") as error:
        check_rotation(32, (8, 25))
    assert "leave the rotation" in str(error.value.hint)
    with pytest.raises(UnsupportedError, match="convolution"):
        check_rotation(32, (8, 64, 3, 3))
