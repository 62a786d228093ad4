"""What this processor could do at best: the bound that a layer's time is compared with.

A call takes at least as long as its multiplications take at the processor's peak, and as long as
its bytes take to be read. Both are measured here, by loops that do nothing else, on one thread.
How fast memory is depends on how much is read again and again: weights are read once in a run, so
they come from where the whole program fits; what flows between layers has just been written.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import inf
from time import perf_counter

from fewbit.cost.cpu.measure import Bench, Timer
from fewbit.cost.cpu.probes import BytePeak, FloatPeak
from fewbit.runtime.profile import CallProfile
from fewbit.toolchain.isa import Isa

FOOTPRINTS = tuple(1 << bits for bits in (14, 17, 19, 20, 21, 22, 23, 25, 27))
"""Bytes that are read again and again, from a first cache to main memory."""
SECONDS = 0.05
"""For each measurement."""
ROUNDS = 10
"""How much longer threads read that have to be at it together."""
STEPS = 20_000
_FLOATS = re.compile(r"fewbit_(matmul|conv2d|depthwise)_f32")


@dataclass(frozen=True)
class Roofline:
    """The bounds of one thread; all are rates, a second."""

    float_macs: float
    byte_macs: float
    """MACs of 8-bit integers with 32-bit accumulators; narrower integers are widened to these."""
    bytes_read: dict[int, float]
    """The bandwidth, by how many bytes are read again and again."""

    def seconds(self, call: CallProfile, program_bytes: int, threads: int = 1) -> float:
        """Return the minimum time of one call, in a program of so many bytes in all."""
        peak = self.float_macs if _FLOATS.fullmatch(call.kernel) else self.byte_macs
        flowing = call.bytes - call.weight_bytes
        reading = call.weight_bytes / self.rate(program_bytes) + flowing / self.rate(flowing)
        return max(call.macs / peak, reading) / threads

    def rate(self, footprint: int) -> float:
        """Return bytes a second, read from a memory of this size."""
        known = next((size for size in self.bytes_read if footprint <= size), None)
        return self.bytes_read[max(self.bytes_read) if known is None else known]


def measure_roofline(isa: Isa) -> Roofline:
    bench = Bench(isa, max(FOOTPRINTS))
    floats, dots = FloatPeak(isa), BytePeak(isa)
    return Roofline(
        float_macs=STEPS * floats.macs / _minimum(bench.peak(floats, STEPS)),
        byte_macs=STEPS * dots.macs / _minimum(bench.peak(dots, STEPS)),
        bytes_read=_make_monotonic(
            {size: size / _minimum(bench.read(size)) for size in FOOTPRINTS}
        ),
    )


def measure_reading(isa: Isa, size: int, threads: int) -> float:
    """Return bytes a second that so many threads read together, each its part of this size."""
    part = max(size // threads, min(FOOTPRINTS))
    benches = [Bench(isa, part) for _ in range(threads)]
    timers = [bench.read(part) for bench in benches]
    best, end = 0.0, perf_counter() + ROUNDS * SECONDS
    with ThreadPoolExecutor(threads) as pool:
        while perf_counter() < end:
            start = perf_counter()
            wait([pool.submit(timer.run) for timer in timers])
            read = sum(timer.repeats for timer in timers) * part
            best = max(best, read / (perf_counter() - start))
    return best


def _make_monotonic(rates: dict[int, float]) -> dict[int, float]:
    """Make rates fall with size: where more memory looks faster, the smaller was disturbed."""
    best = 0.0
    for size in sorted(rates, reverse=True):
        best = max(best, rates[size])
        rates[size] = best
    return rates


def _minimum(timer: Timer) -> float:
    """Return seconds of a call, at best."""
    best, end = inf, perf_counter() + SECONDS
    while perf_counter() < end:
        best = min(best, timer.seconds())
    return best
