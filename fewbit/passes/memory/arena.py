"""Where buffers lie in an arena, by their sizes and lifetimes.

Two buffers may share bytes unless they live at the same time. Finding the minimal peak is hard;
placing buffers one after another at the lowest free place is good, and which is placed first
matters. So a few orders are tried, each is mended by placing first what lay highest, and the best
plan is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Buffer:
    size: int
    first: int
    """The time at which it is first written."""
    last: int
    """The time at which it is last used."""

    def meets(self, other: Buffer) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Plan:
    offsets: tuple[int, ...]
    peak: int


ORDERS: tuple[Callable[[Buffer], tuple[int, ...]], ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first, -b.size),
    lambda b: (-b.last, -b.size),
    lambda b: (b.first - b.last, -b.size),
    lambda b: (-b.size * (b.last - b.first + 1),),
)

MENDINGS = 40
EFFORT = 200_000
"""Bounds the time that is spent on a plan of many buffers."""


def plan(buffers: Sequence[Buffer], alignment: int = 64) -> Plan:
    """Return offsets at multiples of `alignment` at which no two buffers meet in time and place."""
    least = lower_bound([replace(b, size=_align(b.size, alignment)) for b in buffers])
    best: Plan | None = None
    for order in ORDERS:
        indices = sorted(range(len(buffers)), key=lambda i: order(buffers[i]))
        for _ in range(1 + min(MENDINGS, EFFORT // (1 + len(buffers) ** 2))):
            candidate = _place(buffers, indices, alignment)
            if best is None or candidate.peak < best.peak:
                best = candidate
            if best.peak == least:
                return best
            highest = max(indices, key=lambda i: candidate.offsets[i] + buffers[i].size)
            indices.remove(highest)
            indices.insert(0, highest)
    assert best is not None
    return best


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """Return the bytes that are live at the worst moment: no plan needs fewer."""
    times = {b.first for b in buffers}
    return max((sum(b.size for b in buffers if b.first <= t <= b.last) for t in times), default=0)


def overlaps(buffers: Sequence[Buffer], offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of buffers that share bytes while both live: a valid plan has none."""
    pairs: list[tuple[int, int]] = []
    for i, a in enumerate(buffers):
        for j, b in enumerate(buffers[:i]):
            apart = offsets[i] + a.size <= offsets[j] or offsets[j] + b.size <= offsets[i]
            if a.meets(b) and not apart and a.size and b.size:
                pairs.append((j, i))
    return pairs


def _place(buffers: Sequence[Buffer], order: Sequence[int], alignment: int) -> Plan:
    offsets = [0] * len(buffers)
    placed: list[int] = []
    for i in order:
        neighbours = sorted(
            (offsets[j], buffers[j].size) for j in placed if buffers[j].meets(buffers[i])
        )
        offsets[i] = _lowest_gap(neighbours, buffers[i].size, alignment)
        placed.append(i)
    ends = (offset + b.size for offset, b in zip(offsets, buffers, strict=True))
    return Plan(tuple(offsets), _align(max(ends, default=0), alignment))


def _lowest_gap(neighbours: Sequence[tuple[int, int]], size: int, alignment: int) -> int:
    start = 0
    for offset, length in neighbours:
        if start + size <= offset:
            break
        start = max(start, _align(offset + length, alignment))
    return start


def _align(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
