"""What each kind of work takes on one machine, and so how long a call takes.

    seconds = (computing³ + reading³)^⅓        computing = Σ counts · coefficients
                                               reading   = Σ bytes · read(footprint) · factors

Computing and reading overlap, so the longer of them decides; the power rounds the corner where both
take as long. `read` is the time to read a byte of so much memory as is in use: it stands for all
caches. Coefficients are never negative, so more work never takes less time.

Of several threads, the one with the most work decides, and meeting the others costs something too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import log2

import numpy as np

from fewbit.cost.cpu.defaults import CLOCK, CYCLES, FACTORS, READ_CYCLES, cycles_of, factor_of
from fewbit.cost.cpu.kernel_call import KernelCall
from fewbit.cost.cpu.tiles import UNITS
from fewbit.cost.cpu.work import Work, work_of
from fewbit.toolchain.isa import Isa

POWER = 3
"""How sharp the corner is; the largest of two would be infinity."""
MEETING = 1e-6
"""Seconds that threads need to meet after a layer, cores fetching what others wrote included."""


@dataclass(frozen=True)
class Read:
    """Seconds to read a byte, by the memory in use: points on a curve that never falls."""

    points: tuple[tuple[int, float], ...]

    def __call__(self, footprint: float) -> float:
        sizes = [log2(size) for size, _ in self.points]
        return float(np.interp(log2(max(footprint, 1.0)), sizes, [t for _, t in self.points]))


@dataclass(frozen=True)
class Accuracy:
    """Relative errors on calls that were not calibrated on."""

    calls: int
    median: float
    ninth_decile: float
    within_fifth: float
    """The share of calls whose time was predicted to 20 %."""

    def __str__(self) -> str:
        return (
            f"{self.within_fifth:.0%} of {self.calls} unseen calls within 20 %, "
            f"median error {self.median:.1%}, nine of ten within {self.ninth_decile:.1%}"
        )


@dataclass(frozen=True)
class Bounds:
    """What the processor can do at best: no kernel is faster."""

    macs: Mapping[str, float]
    """Multiplications a second on one thread, of `f32` and of `i8`."""
    read: Read

    def bandwidth(self, footprint: float) -> float:
        """Return the bytes per second that one thread reads of so much memory."""
        return 1 / self.read(footprint)


@dataclass(frozen=True)
class Calibration:
    """The cost model with its numbers for one machine."""

    processor: str
    isa: Isa
    coefficients: Mapping[str, float]
    """Seconds of one count, and for memory the factor on reading it, by their term."""
    read: Read
    macs: Mapping[str, float]
    accuracy: Accuracy | None = None
    date: str = ""

    @property
    def is_calibrated(self) -> bool:
        return bool(self.date)

    @staticmethod
    @cache
    def default(isa: Isa) -> Calibration:
        """Return a calibration for a machine that was not measured: the cycles of another."""
        return Calibration(
            processor="",
            isa=isa,
            coefficients={
                **{term: cycles / CLOCK for term, cycles in CYCLES.items()},
                **FACTORS,
            },
            read=Read(tuple((size, cycles / CLOCK) for size, cycles in READ_CYCLES)),
            macs={
                "f32": UNITS * isa.lanes * CLOCK / (1 if isa.fma else 2),
                "i8": UNITS * isa.lanes * isa.step * CLOCK / isa.dot.operations,
            },
        )

    def seconds(self, call: KernelCall) -> float:
        """Return how long the call takes."""
        work = work_of(call)
        meeting = MEETING if call.threads > 1 else 0.0
        return overlap(self.computing(work), self.reading(work)) + meeting

    def computing(self, work: Work) -> float:
        return sum(
            count * self.coefficients.get(term, cycles_of(term) / CLOCK)
            for term, count in work.counts.items()
        )

    def reading(self, work: Work) -> float:
        return sum(
            stream.bytes
            * self.read(stream.footprint)
            * self.coefficients.get(stream.term, factor_of(stream.term))
            for stream in work.streams
        )

    def bounds(self) -> Bounds:
        return Bounds(self.macs, self.read)


def overlap(computing: float, reading: float) -> float:
    """Return a smooth maximum of both times."""
    longer, shorter = max(computing, reading), min(computing, reading)
    return longer * (1 + (shorter / longer) ** POWER) ** (1 / POWER) if longer else 0.0
