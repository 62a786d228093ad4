"""How long a call takes on the GPU.

`cold` empties the second-level cache before each call and times one call between two events: what a
layer takes that runs once in a model. While the cache is being emptied the processor gets ahead, so
launching costs nothing here. What an event says depends on where it lies, by up to 0.7 us; so all
calls are timed with the same events, half of them in the other order, and the two medians are
averaged. `warm` replays a graph of many calls: what remains when data stay in the cache and
launches are taken out.
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


@cache
def _events(count: int) -> list[torch.cuda.Event]:
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count)]
    for event in events:
        event.record()  # which makes it
    return events


def flush() -> None:
    """Empty the cache."""
    _flush().zero_()


def cold(call: Callable[[], object], rounds: int = 30) -> float:
    """Return microseconds of a call whose data are not in the cache."""
    for _ in range(3):
        call()
    events = _events(2 * rounds)
    pairs = list(zip(events[::2], events[1::2], strict=True))
    pairs = [pair if i % 2 else pair[::-1] for i, pair in enumerate(pairs)]
    for start, end in pairs:
        flush()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    times = [start.elapsed_time(end) * 1e3 for start, end in pairs]
    return (median(times[::2]) + median(times[1::2])) / 2


def warm(call: Callable[[], object], rounds: int = 20) -> float:
    """Return microseconds of a call that follows the same call."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    times: list[float] = []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return median(times)
