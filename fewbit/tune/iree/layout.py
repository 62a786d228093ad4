"""Whether IREE lays matrices out in tiles of its own: one choice for a whole program.

With data tiling, matmuls are kernels of IREE's on matrices that it has packed, and no tiles of
ours reach them. Without, they are dispatches like others. Which is faster depends on the program,
so both are tried; the choice holds for the program as it is, with the sizes of its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from fewbit.cost.hardware import Hardware
from fewbit.cost.hardware.host import host
from fewbit.targets.iree.source import Source
from fewbit.tune.database import Database, Key, Result, versions_of
from fewbit.tune.iree.tuning import PACKAGES, TARGET
from fewbit.tune.schedule import Schedule
from fewbit.tune.timing import MARGIN, Times

WORDS = ("data-tiling", "ukernels")
"""What flags that lay matrices out have in common, whatever IREE calls them."""
IN_ROWS = Schedule((), (0,))
"""What the database has for a program whose matrices stay in rows."""


def in_rows(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the flags without those that lay matrices out."""
    return tuple(flag for flag in flags if not any(word in flag for word in WORDS))


def program_key(source: Source, hardware: Hardware | None = None) -> Key:
    """Return the key of a program: its text, in which weights are names and shapes."""
    digest = sha256(source.text.encode()).hexdigest()[:24]
    identity = (hardware or host()).identity
    return Key(TARGET, f"program {digest}", identity, versions_of(*PACKAGES))


def chosen_flags(
    source: Source, flags: Sequence[str], database: Database, hardware: Hardware | None = None
) -> tuple[str, ...]:
    """Return those that were found to be faster for the program, or else as they are given."""
    result = database.get(program_key(source, hardware))
    return tuple(flags) if result is None or result.schedule is None else in_rows(flags)


def is_faster(rows: Times, tiled: Times | None) -> bool:
    """Return whether a program with its matrices in rows beats all else; both were timed beside the
    default."""
    best = min(1.0, tiled.ratio(0)) if tiled is not None else 1.0
    noise = max(rows.noise, tiled.noise if tiled is not None else 0.0)
    return rows.ratio(0) < best - MARGIN * noise


def keep_layout(source: Source, database: Database, times: Times, *, faster: bool) -> None:
    """Record the layout, so that later compiles of the program use it."""
    result = Result(program_key(source), IN_ROWS, times.ratio(0), times.noise, times.default, 1, "")
    reason = "matrices in tiles are as fast"
    database.put(result if faster else replace(result, schedule=None, ratio=1.0, reason=reason))
