"""Where a sequence repeats itself: the same items, some number of times, one run behind another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Repeat:
    """Runs of `period` items that are alike: `count` of them from `start` on, and `spare` items
    behind the last that go on in the same way, so that runs could begin as much later."""

    start: int
    period: int
    count: int
    spare: int

    @property
    def saved(self) -> int:
        """How many items are repetitions of others."""
        return self.period * (self.count - 1)


def find_repeats(items: Sequence[int], least: int) -> list[Repeat]:
    """Return the places at which items repeat at least so often, those that save most first.

    Of runs that save as much, those of the shortest period come first.
    """
    row = np.asarray(items)
    repeats = [
        Repeat(start, period, length // period + 1, length % period)
        for period in range(1, len(items) // least + 1)
        for start, length in _runs(row[period:] == row[:-period])
        if length // period + 1 >= least
    ]
    return sorted(repeats, key=lambda each: (-each.saved, each.period, each.start))


def _runs(holds: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Iterator[tuple[int, int]]:
    """Yield start and length of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(np.int8)))
    for start, end in edges.reshape(-1, 2).tolist():
        yield start, end - start
