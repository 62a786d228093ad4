"""What a run counted: how often each instruction was executed, and sums of that.

Simulators only note where straight runs of instructions begin and end; how often each instruction
was executed follows by adding up (`counts`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fewbit.riscv.instructions import Kind
from fewbit.simulators.riscv.code import Code

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Histogram:
    """Executed instructions by class and by mnemonic, and how many branches were taken."""

    kinds: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    mnemonics: Mapping[str, int] = field(default_factory=dict[str, int])
    taken: int = 0
    misses: tuple[int, ...] = ()
    """The lines that data caches with one way, two, ... fetched, where the machine counts them."""

    @property
    def instructions(self) -> int:
        return sum(self.kinds.values())

    def __getitem__(self, name: str) -> int:
        """Return the count of a class (`Kind.LOAD`, "load") or of a mnemonic ("lw")."""
        if name in self.kinds:
            return self.kinds[Kind(name)]
        return self.mnemonics.get(name, 0)


@dataclass(frozen=True)
class Tally:
    """Counts for each instruction of the code."""

    code: Code
    executed: Counts
    taken: Counts
    misses: tuple[int, ...] = ()

    def __sub__(self, other: Tally) -> Tally:
        return self._combine(other, -1)

    def __add__(self, other: Tally) -> Tally:
        return self._combine(other, 1)

    def _combine(self, other: Tally, sign: int) -> Tally:
        misses = tuple(a + sign * b for a, b in zip(self.misses, other.misses, strict=True))
        executed, taken = self.executed + sign * other.executed, self.taken + sign * other.taken
        return Tally(self.code, executed, taken, misses)

    def histogram(self, start: int = 0, stop: int = sys.maxsize) -> Histogram:
        """Return the histogram of addresses `start` to `stop`; misses are known in total only."""
        inside = slice(*np.searchsorted(self.code.addresses, [start, stop]).tolist())
        executed = self.executed[inside]
        names = self.code.mnemonic_ids[inside]
        every = np.zeros(len(self.code.mnemonics), np.int64)
        np.add.at(every, names, executed)
        mnemonics: dict[str, int] = {}
        kinds: dict[Kind, int] = {}
        for i in np.flatnonzero(every):
            name, kind = self.code.mnemonics[i], self.code.kinds[i]
            mnemonics[name] = int(every[i])
            kinds[kind] = kinds.get(kind, 0) + int(every[i])
        branches = self.code.branches[inside]
        misses = self.misses if (start, stop) == (0, sys.maxsize) else ()
        return Histogram(kinds, mnemonics, int(self.taken[inside][branches].sum()), misses)

    def by_function(self) -> dict[str, Histogram]:
        """Return a histogram for each function that ran, by address, without its callees."""
        histograms: dict[str, Histogram] = {}
        for name, start, stop in self.code.functions():
            histogram = self.histogram(start, stop)
            if histogram.instructions:
                histograms[name] = histogram
        return histograms


@dataclass(frozen=True)
class Execution:
    """A finished call."""

    result: int
    """a0, unsigned."""
    float_result: int
    """fa0, its 64 bits."""
    tally: Tally
    marks: Mapping[int, Tally] = field(default_factory=dict[int, Tally])
    """What ran behind each mark (`Assembler.mark`); what ran before the first is under none."""

    @cached_property
    def histogram(self) -> Histogram:
        return self.tally.histogram()

    @property
    def instructions(self) -> int:
        return self.histogram.instructions

    @cached_property
    def by_function(self) -> dict[str, Histogram]:
        return self.tally.by_function()

    @cached_property
    def by_mark(self) -> dict[int, Histogram]:
        return {mark: tally.histogram() for mark, tally in self.marks.items()}


class Counters:
    """Where runs begin (`starts`), end by a jump (`jumps`), or end otherwise (`breaks`).

    A run that ends behind instruction i is noted at i + 1.
    """

    def __init__(
        self,
        code: Code,
        starts: Counts | None = None,
        jumps: Counts | None = None,
        misses: Callable[[], tuple[int, ...]] = tuple[int, ...],
    ) -> None:
        self.code = code
        self._misses = misses
        size = len(code) + 1
        self.starts = np.zeros(size, np.int64) if starts is None else starts
        self.jumps = np.zeros(size, np.int64) if jumps is None else jumps
        self.breaks = np.zeros(size, np.int64)

    def tally(self) -> Tally:
        executed = np.cumsum(self.starts - self.jumps - self.breaks)[:-1]
        return Tally(self.code, executed, self.jumps[1:].copy(), self._misses())


class Marks:
    """Charges what is executed to the latest mark."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._current: int | None = None
        self._before = counters.tally()
        self._tallies: dict[int, Tally] = {}

    def set(self, number: int) -> None:
        """Charge what follows to this mark; called between two runs."""
        self._charge()
        self._current = number

    def finish(self) -> dict[int, Tally]:
        self._charge()
        return self._tallies

    def _charge(self) -> None:
        now = self._counters.tally()
        if self._current is not None:
            spent = now - self._before
            known = self._tallies.get(self._current)
            self._tallies[self._current] = spent if known is None else known + spent
        self._before = now
