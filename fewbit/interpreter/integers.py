"""Two's complement arithmetic of any width from 1 to 64 on numpy's integer types.

Values are held sign-extended (see `values`). An op computes in the storage type, whose wrap-around
is right modulo a larger power of two, and `wrap` then reduces to the width: no op needs to know
which widths numpy has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fewbit.interpreter.values import Value


def signed(value: Value, width: int) -> Value:
    """Return signed numbers in a signed numpy type; the one bit of a true i1 is its sign."""
    return np.negative(value, dtype=np.int8, casting="unsafe") if width == 1 else value


def unsigned(value: Value, width: int) -> Value:
    """Return unsigned numbers in an unsigned numpy type."""
    if width == 1:
        return value.astype(np.uint8)
    bits = value.view(f"u{value.dtype.itemsize}")
    return bits if width == 8 * value.dtype.itemsize else bits & bits.dtype.type((1 << width) - 1)


def wrap(value: Any, width: int) -> Value:
    """Reduce integers, held in at least `width` bits, to the canonical form of that width."""
    if width == 1:
        return (value & value.dtype.type(1)).astype(bool)
    storage = np.dtype(f"i{max(8, 1 << (width - 1).bit_length()) // 8}")
    value = value.astype(storage)
    spare = storage.type(8 * storage.itemsize - width)
    return value if not spare else (value << spare) >> spare


def smallest(width: int) -> int:
    return -(1 << (width - 1))


def largest(width: int) -> int:
    return (1 << (width - 1)) - 1


def high_product(lhs: Value, rhs: Value) -> Value:
    """Return the upper 64 bits of the 128-bit product of two uint64."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    lhs_high, lhs_low = lhs >> half, lhs & mask
    rhs_high, rhs_low = rhs >> half, rhs & mask
    middle = lhs_high * rhs_low + ((lhs_low * rhs_low) >> half)
    carry = (middle & mask) + lhs_low * rhs_high
    return lhs_high * rhs_high + (middle >> half) + (carry >> half)
