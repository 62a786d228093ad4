"""Rotation by an orthonormal block Hadamard matrix, along the last dimension.

`y = W x = (W H)(Hᵀ x)`: rotated activations have no outliers, to which one scale would give all of
its bits. H has blocks of a power of two on its diagonal, Sylvester's matrices, divided by the root
of their size. It is symmetric, so it is its own inverse, and `rotate` is H and Hᵀ alike.

A block is rotated by butterflies: a stage for each bit of an element's index, from the lowest, in
which two elements become their sum and their difference; in the end comes one multiplication. All
of these are float32 operations that round by themselves, so the result has the same bits wherever
it is computed, and in whatever order the elements lie in memory between stages.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, UnsupportedError, UsageError
from fewbit.numerics.floats import to_working_type

Array = npt.NDArray[Any]


def rotate(x: npt.ArrayLike, block: int | None) -> Array:
    """Rotate blocks of the last dimension; without a block, return the array as it is."""
    array = np.asarray(x)
    if block is None:
        return array
    check_block(block, array.shape[-1])
    wide = to_working_type(array)
    for _ in range(block.bit_length() - 1):
        pairs = wide.reshape(prod(wide.shape) // block, block // 2, 2)
        first, second = pairs[..., 0], pairs[..., 1]
        wide = np.stack([first + second, first - second], axis=1)
    return (wide * wide.dtype.type(factor(block))).reshape(array.shape)


def factor(block: int) -> float:
    """Return what the sums and differences of a block are multiplied by, as a float32 number."""
    return float(np.float32(1 / sqrt(block)))


def check_size(block: int) -> None:
    """Refuse a block that has no such matrix."""
    if block < 2 or block & (block - 1):
        raise UsageError(
            f"a rotation of blocks of {block}",
            hint="blocks are a power of two: 32, 64 or 128",
        )


def check_block(block: int, width: int) -> None:
    """Refuse blocks that do not divide the dimension."""
    check_size(block)
    if width % block:
        largest = width & -width
        other = f"blocks of {largest} do; or leave" if largest >= 2 else "leave"
        raise ShapeError(
            f"blocks of {block} do not divide the reduction dimension K = {width}",
            hint=f"{other} the rotation of this layer out",
        )


def check_rotation(block: int | None, weight: tuple[int, ...]) -> None:
    """Refuse a rotation that a layer with such a weight cannot have."""
    if block is None:
        return
    if len(weight) != 2:
        raise UnsupportedError(
            "a convolution cannot be rotated: linear layers and embeddings can",
            hint="give it a scheme without 'h'",
        )
    check_block(block, weight[1])
