"""Scales that are a factor of f16 times a small integer, as those of super-blocks in GGUF files.

What a scale was made of is not kept with a program: it is found again in the scale itself. A number
of f16 is a multiple of 2^-24, so scales are integers in such steps, and the factor of some of them
divides their greatest common divisor. Their products are exact in float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fewbit.numerics.arrays import Float32Array, Int8Array

SUPER_BLOCK = 256
"""Numbers that share a factor."""
STEPS = np.float64(2**24)
"""Steps of f16 in 1."""
LEAST, MOST = -128, 127


class Products(NamedTuple):
    """Scales [n, groups] as factor · number."""

    factors: NDArray[np.float16]
    """[n, groups / together]."""
    numbers: Int8Array
    """[n, groups]."""


def split_products(scale: Float32Array, together: int) -> Products | None:
    """Return scales as products, if so many neighbours have a factor in common; None otherwise."""
    if scale.shape[1] % together:
        return None
    steps = scale.astype(np.float64) * STEPS
    if not (np.isfinite(steps).all() and np.array_equal(steps, np.rint(steps))):
        return None
    counts = steps.astype(np.int64).reshape(len(scale), -1, together)
    divisor = np.gcd.reduce(counts, axis=-1)
    factors = _exact_factors(divisor)
    if factors is None:
        return None
    units = (factors.astype(np.float64) * STEPS).astype(np.int64)
    numbers = counts // np.where(units, units, 1)[..., None]
    negated = numbers.max(-1, initial=0) == -LEAST
    factors = np.where(negated, -factors, factors)
    numbers = np.where(negated[..., None], -numbers, numbers)
    if not LEAST <= numbers.min(initial=0) <= numbers.max(initial=0) <= MOST:
        return None
    return Products(factors, numbers.astype(np.int8).reshape(scale.shape))


def _exact_factors(divisor: NDArray[np.int64]) -> NDArray[np.float16] | None:
    """Return for each the largest number of f16 of which it is a small multiple, or None."""
    factors = np.zeros(divisor.shape, np.float16)
    missing = divisor != 0
    for part in range(1, MOST + 1):
        steps = divisor // part
        with np.errstate(over="ignore"):
            rounded = (steps / STEPS).astype(np.float16)
        exact = (steps * part == divisor) & (rounded.astype(np.float64) * STEPS == steps)
        factors = np.where(missing & exact, rounded, factors)
        missing = missing & ~exact
        if not missing.any():
            return factors
    return None
