"""mean|x|, in one order of summation that numpy, torch, every kernel and every target follow.

Magnitudes are added in float64, and the mean is rounded to float32 once. Even so the order shows
where magnitudes differ by more than 2^29, and a scale must have the same bits everywhere:

- element i of a part is added to lane i mod 32, in order: vectors of any processor hold whole
  lanes, and several of them hide the latency of an addition;
- a run has parts of 1024 elements, or as many times more as leave no more than 64 parts: threads
  share them, and their lanes are added in the order of the parts;
- lanes are halved until one is left: lane i is added to by lane i + 16, then i + 8, and on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fewbit.numerics.arrays import Float32Array

LANES = 32
PARTS = 64
"""Parts of a run, at most."""
PART = 1024
"""Elements of a part; of longer runs a multiple of it."""
_ROWS_BLOCK = 1 << 18
"""Elements whose lanes are added at once, so that they stay in a cache."""


def part_length(length: int) -> int:
    """Return how many elements of a run of that length a part has: whole lanes of a short one."""
    if length <= PART:
        return LANES * max(1, -(-length // LANES))
    return PART * -(-length // (PART * PARTS))


def mean_magnitude(runs: Float32Array) -> Float32Array:
    """Return mean|x| of each run."""
    return (sum_magnitudes(runs) / runs.shape[1]).astype(np.float32)


def sum_magnitudes(runs: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return Σ|x| of each run."""
    count, length = runs.shape
    lanes = np.zeros((count, LANES), np.float64)
    rows = max(1, _ROWS_BLOCK // length)
    for top in range(0, count, rows):
        _add_parts(runs[top : top + rows], lanes[top : top + rows])
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def _add_parts(runs: npt.NDArray[np.floating], lanes: npt.NDArray[np.float64]) -> None:
    """Add the magnitudes of runs to their lanes."""
    count, length = runs.shape
    part = part_length(length)
    parts = -(-length // part)
    padded = np.pad(np.abs(runs), ((0, 0), (0, parts * part - length)))
    split = padded.reshape(count, parts, part // LANES, LANES)
    sums = np.zeros((count, parts, LANES), np.float64)
    for step in range(part // LANES):
        sums += split[:, :, step]
    for number in range(parts):
        lanes += sums[:, number]
