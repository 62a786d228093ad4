"""Which lines of memory a small data cache would have fetched, counted as a program runs.

A set of a cache with k ways that replaces what was used least recently holds the k lines used last.
So one list of recent lines for each set tells the misses of every number of ways: an access whose
line is not among the first k is a miss of k ways. Loads and stores count alike, since the cores'
caches fetch what is written, too.
"""

from __future__ import annotations

LINE = 64
SETS = 64
WAYS = 2
"""The most ways that are counted for."""
NO_LINE = (1 << 64) - 1


class RecentLines:
    """The lines that were used last, by set; misses so far, `misses[0]` of one way."""

    def __init__(self) -> None:
        self._sets: list[list[int]] = []
        self.misses = [0] * WAYS
        self.clear()

    def clear(self) -> None:
        """Empty the cache, with nothing counted."""
        self._sets = [[NO_LINE] * WAYS for _ in range(SETS)]
        self.misses[:] = [0] * WAYS

    def touch(self, address: int) -> None:
        line = address // LINE
        recent = self._sets[line % SETS]
        if recent[0] == line:
            return
        place = recent.index(line) if line in recent else WAYS
        for ways in range(place):
            self.misses[ways] += 1
        del recent[min(place, WAYS - 1)]
        recent.insert(0, line)
