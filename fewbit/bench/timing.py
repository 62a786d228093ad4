"""How long functions take, as a ratio between them.

Functions take turns, so that all of them see the same state of the machine. For one thread the
time is that of the process on its processor, whose minimum other programs disturb least; for
several it is that of a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time


@dataclass(frozen=True)
class Timing:
    """Seconds of one call."""

    least: float
    median: float
    rounds: int


def time_together(
    functions: Mapping[str, Callable[[], object]],
    *,
    seconds: float = 2.0,
    threads: int = 1,
) -> dict[str, Timing]:
    """Call all functions by turns for about this long; the times of each."""
    clock = process_time if threads == 1 else perf_counter
    repeats = {name: _repeats(function, clock) for name, function in functions.items()}
    found: dict[str, list[float]] = {name: [] for name in functions}
    end = perf_counter() + seconds
    while perf_counter() < end or len(next(iter(found.values()))) < 5:
        for name, function in functions.items():
            count = repeats[name]
            start = clock()
            for _ in range(count):
                function()
            found[name].append((clock() - start) / count)
    return {name: Timing(min(t), median(t), len(t) * repeats[name]) for name, t in found.items()}


def _repeats(function: Callable[[], object], clock: Callable[[], float]) -> int:
    """Calls in a row that take a millisecond or more: the clock is too coarse for fewer."""
    for _ in range(3):
        function()
    count = 1
    while True:
        start = clock()
        for _ in range(count):
            function()
        if clock() - start >= 1e-3 or count >= 4096:
            return count
        count *= 4
