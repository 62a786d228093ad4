"""The measured model of IREE's dispatches: each schedule compiled, checked and timed here.

A schedule counts only if its code differs from the default's and what it writes does not: IREE
drops configurations without a word, and may compile wrong ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from fewbit.cost.loops import LoopNest
from fewbit.errors import Error
from fewbit.tune.database import Trial
from fewbit.tune.iree.bindings import Arguments, Bytes, Span, read_arguments
from fewbit.tune.iree.configured import Configured
from fewbit.tune.iree.executable import Binary, compile_dispatch
from fewbit.tune.iree.library import Library
from fewbit.tune.schedule import Schedule
from fewbit.tune.timing import Times, time_by_turns

TOLERANCE = {"f64": 1e-9, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}
"""The tolerance, relative to the largest result: sums are reordered. Integers are equal."""


@dataclass
class Measured:
    """Trials of one dispatch."""

    dispatch: Configured
    folder: Path
    flags: Sequence[str] = ()
    name: str = "measured"
    times: Times | None = None
    _count: int = field(default=0)

    @cached_property
    def arguments(self) -> Arguments:
        return read_arguments(self.dispatch.module)

    @cached_property
    def default(self) -> Binary:
        return self._compile(self.dispatch.text)

    @cached_property
    def _pair(self) -> tuple[Library, Library]:
        """The default, twice."""
        return self._load(self.default), self._load(self.default)

    @cached_property
    def _expected(self) -> list[Bytes]:
        library = self._load(self.default)
        library.run()
        return library.bindings

    def can(self, nest: LoopNest) -> str | None:
        try:
            _ = self._pair
        except Error as e:
            return e.what
        return None

    def seconds(self, nest: LoopNest, schedule: Schedule) -> float:
        (trial,) = self.try_all([schedule])
        return float("inf") if trial.ratio is None else trial.ratio

    def default_seconds(self) -> float:
        return time_by_turns(self._timers(), (), rounds=4).default

    def try_all(self, schedules: Sequence[Schedule]) -> list[Trial]:
        """Return all of them, timed by turns with the default."""
        candidates: list[Trial | Library] = [self._prepare(schedule) for schedule in schedules]
        libraries = [each for each in candidates if isinstance(each, Library)]
        self.times = time_by_turns(self._timers(), [library.seconds for library in libraries])
        ratios = iter(range(len(libraries)))
        return [
            each if isinstance(each, Trial) else Trial(schedule, self.times.ratio(next(ratios)))
            for each, schedule in zip(candidates, schedules, strict=True)
        ]

    def _timers(self):
        first, again = self._pair
        return first.seconds, again.seconds

    def _prepare(self, schedule: Schedule) -> Trial | Library:
        try:
            binary = self._compile(self.dispatch.with_schedule(schedule))
            if binary.instructions == self.default.instructions:
                return Trial(schedule, None, "IREE makes the same instructions of it")
            library = self._load(binary)
        except Error as e:
            return Trial(schedule, None, e.what)
        library.run()
        if (difference := self._difference(library.bindings)) is not None:
            return Trial(schedule, None, difference)
        return library

    def _compile(self, text: str) -> Binary:
        self._count += 1
        return compile_dispatch(
            text, self.flags, self.folder, f"{self.dispatch.name}_{self._count}"
        )

    def _load(self, binary: Binary) -> Library:
        self._count += 1
        path = self.folder / f"{self.dispatch.name}_{self._count}.loaded.so"
        arguments = self.arguments
        return Library(binary, path, arguments.constants, arguments.fill())

    def _difference(self, given: list[Bytes]) -> str | None:
        """Return what is wrong with the numbers, if anything."""
        for span in self.arguments.spans:
            where = slice(span.offset, span.offset + span.bytes)
            wrong = differs(self._expected[span.binding][where], given[span.binding][where], span)
            if wrong:
                return wrong
        return None


def differs(expected: Bytes, given: Bytes, span: Span) -> str | None:
    if span.element not in TOLERANCE:
        return None if np.array_equal(expected, given) else "its integers differ"
    a, b = (_floats(data, span.element) for data in (expected, given))
    with np.errstate(all="ignore"):
        size = np.max(np.abs(a[np.isfinite(a)]), initial=0.0)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        off = np.max(np.abs(a - b)[~same], initial=0.0)
    if np.isnan(off) or off > TOLERANCE[span.element] * size:
        return f"its numbers differ by {off:.2g}"
    return None


def _floats(data: Bytes, element: str) -> np.ndarray:
    if element == "bf16":
        return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    kind = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[element]
    return data.view(kind).astype(np.float64)
