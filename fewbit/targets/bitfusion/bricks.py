"""Matmuls of few-bit integers, composed of bricks: multipliers of 2 by 2 bits.

An integer of up to 8 bits is cut into 1, 2 or 4 digits of 2 bits. The top digit has the sign, -2 to
1, and the others count from 0 to 3. A product is the sum of all products of digits, each shifted
by twice the places of both. One bit, which stands for -1 and 1, and three values fit one digit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import WidthError

BRICK_BITS = 2

Digits = NDArray[np.float32]
"""Digits along the first axis, the lowest first. Floats, because these are multiplied fastest and
sums of products of digits are exact in them."""


def digit_count(bits: int) -> int:
    """Return bricks along one side of a multiplier: 3 bits take those of 4, 5 to 7 those of 8."""
    if not 1 <= bits <= 8:
        raise WidthError(f"bricks compose 1 to 8 bits, not {bits}")
    return 1 if bits <= 2 else 2 if bits <= 4 else 4


def cut(values: NDArray[np.integer], bits: int) -> Digits:
    """Return the digits of integers of so many bits."""
    count = digit_count(bits)
    wide = values.astype(np.int32)
    digits = [(wide >> (BRICK_BITS * place)) & 3 for place in range(count - 1)]
    digits.append(wide >> (BRICK_BITS * (count - 1)))
    if digits[-1].size and not -2 <= digits[-1].min() <= digits[-1].max() <= 1:
        raise WidthError(f"some values do not fit {bits} bits")
    return np.stack(digits).astype(np.float32)


def multiply(rows: Digits, columns: Digits) -> NDArray[np.int64]:
    """Return the matmul of digits, [places, M, K] by [places, K, N]."""
    partial = np.matmul(rows[:, np.newaxis], columns[np.newaxis]).astype(np.int64)
    shifts = BRICK_BITS * np.add.outer(np.arange(len(rows)), np.arange(len(columns)))
    return (partial << shifts[:, :, np.newaxis, np.newaxis]).sum(axis=(0, 1))
