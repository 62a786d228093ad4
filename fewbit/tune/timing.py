"""Times of several ways to do the same, by turns, and how far two runs of one of them differ.

The least time over many rounds is what a processor takes undisturbed. The default is there twice:
what lies between its two times is noise, and nothing that is not faster by more has won.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import thread_time

ROUNDS = 12
ROUND_SECONDS = 1e-3
"""Of calls in a row: the clock is too coarse for fewer."""
LEAST_NOISE = 0.01
MARGIN = 2.0
"""By how many times the noise a way must be faster to be kept."""

Timed = Callable[[int], float]
"""Makes so many calls, and tells the seconds of one."""


def timed(call: Callable[..., object], *inputs: object) -> Timed:
    """By the processor time of this thread."""

    def run(times: int) -> float:
        start = thread_time()
        for _ in range(times):
            call(*inputs)
        return (thread_time() - start) / times

    return run


@dataclass(frozen=True)
class Times:
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
    """Return the least times of all, with the default as first and as last of each round."""
    first, again = default
    order = [first, *others, again]
    calls = [max(1, int(ROUND_SECONDS / max(each(1), 1e-8))) for each in order]
    least = [float("inf")] * len(order)
    for _ in range(rounds):
        for i, each in enumerate(order):
            least[i] = min(least[i], each(calls[i]))
    noise = abs(least[0] - least[-1]) / min(least[0], least[-1])
    return Times(min(least[0], least[-1]), noise, tuple(least[1:-1]))
