"""Random integers of a width; of one bit, -1 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np


def integers(
    rng: np.random.Generator, bits: int, shape: tuple[int, ...]
) -> np.ndarray[Any, np.dtype[np.int8]]:
    if bits == 1:
        return (2 * rng.integers(0, 2, shape) - 1).astype(np.int8)
    return rng.integers(-(1 << bits - 1), 1 << bits - 1, shape).astype(np.int8)
