"""What a long run tells the person who waits: progress and notes, always on stderr.

Work that ends within a second shows nothing. After that a terminal gets a rich bar, and anything
else (a log, a pipe) gets a plain line every few seconds. A thread does the showing, so that work
which reports rarely still shows that it is alive, and reporting a step costs an addition. Only the
outermost of nested progresses is shown. One verbosity, set by `-v` and `-q`, governs the process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Protocol, TextIO

QUIET, NORMAL, VERBOSE, VERY_VERBOSE = -1, 0, 1, 2
SHOW_AFTER_SECONDS = 1.0
LINE_EVERY_SECONDS = 5.0

_verbosity = NORMAL
_shown = Lock()


def set_verbosity(level: int) -> None:
    """Set how much is said: -1 is quiet, 0 normal, and each step up says more."""
    global _verbosity
    _verbosity = level


def verbosity() -> int:
    return _verbosity


def say(message: str, level: int = NORMAL) -> None:
    """Print a line on stderr for those who asked for this much detail."""
    if _verbosity >= level:
        print(message, file=sys.stderr)


class Step(Protocol):
    def __call__(self, count: int = 1, /, *, note: str | None = None) -> None:
        """Report steps that were done; a note stands behind the title from then on."""
        ...


class Meter:
    """How far some work is, and how long it took to get there."""

    def __init__(
        self, title: str, total: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.note = ""
        self._clock = clock
        self._start = clock()

    def step(self, count: int = 1, /, *, note: str | None = None) -> None:
        self.done += count
        if note is not None:
            self.note = note

    @property
    def text(self) -> str:
        """Return the title, with the last note behind it."""
        return f"{self.title}, {self.note}" if self.note else self.title

    def elapsed(self) -> float:
        return self._clock() - self._start

    def line(self) -> str:
        """Return `Packing weights: 25% (2 of 8), about 12 s left`, as much of it as is known."""
        if not self.total:
            count = f"{self.done} done, " if self.done else ""
            return f"{self.text}: {count}{duration(self.elapsed())} so far"
        share = min(self.done / self.total, 1.0)
        text = f"{self.text}: {share:.0%} ({self.done} of {self.total})"
        if not share:
            return text
        return f"{text}, about {duration(self.elapsed() * (1 - share) / share)} left"


def duration(seconds: float) -> str:
    """Format seconds as `3 s`, `2 min 05 s` or `1 h 02 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


@contextmanager
def progress(
    title: str,
    total: int | None = None,
    *,
    stream: TextIO | None = None,
    show_after: float = SHOW_AFTER_SECONDS,
    line_every: float = LINE_EVERY_SECONDS,
) -> Generator[Step]:
    """Show how far the block is: `with progress("Packing", total=n) as step: ...; step(1)`."""
    meter = Meter(title, total)
    if _verbosity < NORMAL or not _shown.acquire(blocking=False):
        yield meter.step
        return
    ended = Event()
    shower = Thread(
        target=_show,
        args=(meter, ended, stream or sys.stderr, show_after, line_every),
        daemon=True,
    )
    shower.start()
    try:
        yield meter.step
    finally:
        ended.set()
        shower.join()
        _shown.release()


def _show(meter: Meter, ended: Event, stream: TextIO, show_after: float, line_every: float) -> None:
    if ended.wait(show_after):
        return
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        _show_bar(meter, ended, stream)
    else:
        _show_lines(meter, ended, stream, line_every)


def _show_lines(meter: Meter, ended: Event, stream: TextIO, every: float) -> None:
    while True:
        print(meter.line(), file=stream, flush=True)
        if ended.wait(every):
            print(f"{meter.title}: ended after {duration(meter.elapsed())}", file=stream)
            return


def _show_bar(meter: Meter, ended: Event, stream: TextIO) -> None:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream)) as bars:
        task = bars.add_task(meter.title, total=meter.total)
        while not ended.wait(0.1):
            bars.update(task, completed=meter.done, description=meter.text)
        bars.update(task, completed=meter.done, description=meter.text)
