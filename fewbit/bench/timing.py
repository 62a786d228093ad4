"""How long functions take, as a ratio between them.

Functions take turns, so that all of them see the same state of the machine. For one thread the
time is that of the process on its processor, whose minimum other programs disturb least; for
several it is that of a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

SAMPLE = 1e-3
"""Seconds of calls in a row that a clock measures well enough."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one call."""

    least: float
    median: float
    rounds: int


def clock_for(threads: int) -> Callable[[], float]:
    return process_time if threads == 1 else perf_counter


def timing_of(samples: Sequence[float], repeats: int) -> Timing:
    """Summarize samples: seconds of a call, each the mean of so many repeats."""
    return Timing(min(samples), median(samples), len(samples) * repeats)


def time_together(
    functions: Mapping[str, Callable[[], object]],
    *,
    seconds: float = 2.0,
    threads: int = 1,
) -> dict[str, Timing]:
    """Call all functions by turns for about this long; return the times of each."""
    clock = clock_for(threads)
    repeats = {name: repeats_of(function, clock) for name, function in functions.items()}
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = perf_counter() + seconds
    while perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, function in functions.items():
            times[name].append(sample(function, repeats[name], clock))
    return {name: timing_of(samples, repeats[name]) for name, samples in times.items()}


def sample(function: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """Return seconds of a call, as the mean of several in a row."""
    start = clock()
    for _ in range(repeats):
        function()
    return (clock() - start) / repeats


def repeats_of(function: Callable[[], object], clock: Callable[[], float]) -> int:
    """Return how many calls in a row make a sample."""
    for _ in range(3):
        function()
    count = 1
    while sample(function, count, clock) * count < SAMPLE and count < 4096:
        count *= 4
    return count
