"""Least squares whose coefficients are not negative: Lawson and Hanson's active set, in numpy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def nnls(a: Floats, b: Floats) -> Floats:
    """Return the x >= 0 for which |a x - b| is least."""
    size = a.shape[1]
    x, passive = np.zeros(size), np.zeros(size, bool)
    gram, right = a.T @ a, a.T @ b
    tolerance = 1e-12 * float(np.abs(right).max(initial=0.0))
    for _ in range(10 * size):
        gain = right - gram @ x
        free = ~passive & (gain > tolerance)
        if not free.any():
            break
        passive[np.flatnonzero(free)[np.argmax(gain[free])]] = True
        while True:
            candidate = np.zeros(size)
            inside = np.ix_(passive, passive)
            candidate[passive] = np.linalg.lstsq(gram[inside], right[passive], rcond=None)[0]
            below = passive & (candidate <= 0)
            if not below.any():
                break
            step = float((x[below] / np.maximum(x[below] - candidate[below], 1e-300)).min())
            x += step * (candidate - x)
            passive &= x > 1e-15 * float(np.abs(x).max(initial=1e-300))
            x[~passive] = 0.0
        x = candidate
    return x
