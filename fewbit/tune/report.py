"""What a search found, op by op and for the whole program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fewbit.targets.agreement import QUANTIZED_TOLERANCE
from fewbit.tune.database import Database, Result
from fewbit.tune.timing import Times

LEAST_NOTICED = 0.02
"""By how much a program may seem slower and still count as fast, however noisy times are."""


@dataclass(frozen=True)
class Row:
    """An op of a program, before and after."""

    name: str
    calls: int
    seconds: float | None
    """Seconds of one call, by default."""
    result: Result | None
    reason: str | None
    """Why its tiles are left as they are."""
    macs: int = 0


@dataclass(frozen=True)
class Report:
    """What a search found."""

    target: str
    rows: tuple[Row, ...]
    before: float
    """Seconds of a call of the whole program, one thread."""
    after: float
    kept: bool
    """Whether the program is compiled with what was found from now on."""
    note: str = ""


def judge(target: str, rows: Sequence[Row], database: Database, times: Times, gap: float) -> Report:
    """Keep what was found if the whole program is not slower with it, and its results the same."""
    ratio = times.ratio(0)
    slower = ratio > 1 + min(times.noise, LEAST_NOTICED)
    if not slower and gap <= QUANTIZED_TOLERANCE:
        return Report(target, tuple(rows), times.default, times.default * ratio, True)
    why = "slower" if slower else f"different by {gap:.2g}"
    for row in rows:
        if row.result is not None and row.result.schedule is not None:
            reason = f"the whole program was {why} with it"
            database.put(replace(row.result, schedule=None, ratio=1.0, reason=reason))
    note = f"the program would be {why}: all is kept as it was"
    return Report(target, tuple(rows), times.default, times.default, False, note)
