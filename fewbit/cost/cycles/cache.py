"""What a small cache costs: the share of repeated reads that misses.

The cores' caches are known: lines of 64 bytes, 64 sets, one way (`small`) or two (`high`). With so
few ways it can be said what stays of a buffer that is read cyclically, or of a matrix's column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

LINE = 64


@dataclass(frozen=True)
class Cache:
    """A data cache with least-recently-used replacement."""

    ways: int
    sets: int = 64

    @property
    def size(self) -> int:
        """Bytes."""
        return self.ways * self.sets * LINE

    def missed(self, size: float) -> float:
        """Return the share of misses of a buffer of `size` bytes that is read cyclically.

        A set with more lines than ways misses on each of them.
        """
        if size <= self.size:
            return 0.0
        return min(1.0, (self.ways + 1) * (size - self.size) / size)

    def missed_column(self, count: int, stride: int) -> float:
        """Return the share of misses of a column of `count` elements, `stride` bytes apart."""
        return _missed_column(self.ways, self.sets, count, stride)


@lru_cache(maxsize=65536)
def _missed_column(ways: int, sets: int, count: int, stride: int) -> float:
    held = [0] * sets
    lines = {position * stride // LINE for position in range(count)}
    for line in lines:
        held[line % sets] += 1
    return sum(number for number in held if number > ways) / len(lines) if lines else 0.0
