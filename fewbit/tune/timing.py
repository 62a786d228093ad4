"""Times of several ways to do the same, by turns, and how far two runs of one of them differ.

The minimum time over many rounds is what a processor takes undisturbed. The default is there twice:
what lies between its two times is noise, and nothing that is not faster by more has won.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import thread_time

ROUNDS = 12
ROUND_SECONDS = 1e-3
"""How long calls in a row take at least: the clock is too coarse for fewer."""
LEAST_NOISE = 0.01
MARGIN = 2.0
"""By how many times the noise a way must be faster to be kept."""

Timed = Callable[[int], float]
"""A function that makes so many calls, and returns the seconds of one."""


def timer(call: Callable[..., object], *inputs: object) -> Timed:
    """Return what times a function by this thread's CPU time."""

    def run(times: int) -> float:
        start = thread_time()
        for _ in range(times):
            call(*inputs)
        return (thread_time() - start) / times

    return run


@dataclass(frozen=True)
class Times:
    """Minimum times of the default and of other ways."""

    default: float
    noise: float
    """The difference of two runs of the default, as a part of its time."""
    others: tuple[float, ...]

    def ratio(self, place: int) -> float:
        return self.others[place] / self.default

    @property
    def bar(self) -> float:
        """The ratio below which a way is faster for sure."""
        return 1 - max(LEAST_NOISE, MARGIN * self.noise)


def time_by_turns(
    default: tuple[Timed, Timed], others: Sequence[Timed], rounds: int = ROUNDS
) -> Times:
    """Return the minimum times of all, with the default as first and as last of each round."""
    first, again = default
    order = [first, *others, again]
    calls = [max(1, int(ROUND_SECONDS / max(each(1), 1e-8))) for each in order]
    minimum = [float("inf")] * len(order)
    for _ in range(rounds):
        for i, each in enumerate(order):
            minimum[i] = min(minimum[i], each(calls[i]))
    default_seconds = min(minimum[0], minimum[-1])
    noise = abs(minimum[0] - minimum[-1]) / default_seconds
    return Times(default_seconds, noise, tuple(minimum[1:-1]))
