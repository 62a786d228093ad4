"""Runs whose mean magnitude shows in which order it was summed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ABOVE = 2.0**54
STEP = 2.0**30
"""Half of what float32 can add to `ABOVE`."""


def runs_at_ties(rows: int, length: int, seed: int = 0) -> NDArray[np.float32]:
    """Return runs whose sum is half-way between floats, but for ones.

    Ones that are added to large numbers, one by one, are lost; ones that are added up first lift
    the sum over the tie. The mean divides by a power of two, which keeps the tie.
    """
    assert length & (length - 1) == 0
    rng = np.random.default_rng(seed)
    x = (rng.random((rows, length)) < 0.5).astype(np.float32)
    for run in x:
        first, second = rng.choice(length, 2, replace=False)
        run[first], run[second] = ABOVE, STEP
    return x * rng.choice(np.array([-1, 1], np.float32), x.shape)
