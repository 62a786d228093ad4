# pyright: basic
"""How long a call takes on the GPU.

`cold` empties the second-level cache before each call and times one call between two events: what a
layer takes that runs once in a model. While the cache is being emptied the processor gets ahead, so
launching costs nothing here. What an event says depends on where it lies, by up to 0.4 us, and new
events take the places of old ones in the other order; so calls are timed in both orders, and the
two medians are averaged. `warm` replays a graph of many calls: what remains when data stay in the
cache and launches are taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import median

import torch

FLUSHED = 512 << 20
"""Bytes written to empty the cache; eight times the largest there is."""
CALLS = 20
"""In one graph."""


@cache
def _flush() -> torch.Tensor:
    return torch.empty(FLUSHED // 4, dtype=torch.int32, device="cuda")


def cold(call: Callable[[], object], rounds: int = 30) -> float:
    """Microseconds of a call whose data are not in the cache."""
    return sum(cold_both_ways(call, rounds)) / 2


def cold_both_ways(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The same by events in the order in which they were made, and in the other."""
    for _ in range(3):
        call()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * rounds)]
    for event in events:
        event.record()  # which makes it
    times: tuple[list[float], list[float]] = ([], [])
    pairs = [(events[i], events[i + 1])[:: 1 - i % 4] for i in range(0, 2 * rounds, 2)]
    for start, end in pairs:
        _flush().zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    for i, (start, end) in enumerate(pairs):
        times[i % 2].append(start.elapsed_time(end) * 1e3)
    return median(times[0]), median(times[1])


def warm(call: Callable[[], object], rounds: int = 20) -> float:
    """Microseconds of a call that follows the same call."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return median(times)
