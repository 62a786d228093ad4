"""How far the results of two compilations of one program may differ, and how far they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TOLERANCE, QUANTIZED_TOLERANCE = 1e-4, 5e-2
"""Relative to the largest result: sums of floats are reordered, and rounding them to integers may
then go the other way."""


def largest_difference(expected: Sequence[Array], given: Sequence[Array]) -> float:
    """Return the largest difference of two runs, relative to the largest number of each output."""
    largest = 0.0
    for a, b in zip(expected, given, strict=True):
        wide, other = a.astype(np.float64), b.astype(np.float64)
        size = float(np.max(np.abs(wide), initial=0.0)) or 1.0
        gap = float(np.max(np.abs(wide - other), initial=0.0)) / size
        largest = max(largest, float("inf") if np.isnan(gap) and not np.isnan(wide).any() else gap)
    return largest
