"""The best settings known, by generation, kind of problem and problem, as a file of the package.

Nothing is tuned when a program is compiled or loaded: what is in the table was measured once, on a
GPU, and a problem that is not in it gets the settings that a family lists first.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fewbit.base.files import replacing_file
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.family import Config

FOLDER = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Entry:
    """What was found best for a problem, and how long it took."""

    family: str
    config: Config
    microseconds: float


Table = dict[str, dict[str, list[Entry]]]
"""By kind (`conv2d`) and problem; the fastest family first."""


def path_of(arch: Arch) -> Path:
    return FOLDER / f"sm_{arch.compute}.json"


_preferred: ContextVar[Table | None] = ContextVar("preferred", default=None)


@contextmanager
def preferring(searched: Table) -> Generator[None]:
    """Prefer, inside, what a search found to what the package has."""
    before = _preferred.set(searched)
    try:
        yield
    finally:
        _preferred.reset(before)


def best_known(arch: Arch) -> Table:
    """Return the table of a generation, and before it what is preferred."""
    kept, searched = load(arch), _preferred.get() or {}
    if not searched:
        return kept
    return {
        kind: {
            problem: [
                *searched.get(kind, {}).get(problem, []),
                *kept.get(kind, {}).get(problem, []),
            ]
            for problem in {**kept.get(kind, {}), **searched.get(kind, {})}
        }
        for kind in {**kept, **searched}
    }


@cache
def load(arch: Arch) -> Table:
    """Return the table of a generation; empty if nothing was measured on it."""
    path = path_of(arch)
    if not path.exists():
        return {}
    return {
        kind: {
            problem: [Entry(entry["family"], entry["config"], entry["us"]) for entry in entries]
            for problem, entries in problems.items()
        }
        for kind, problems in json.loads(path.read_text(encoding="utf-8")).items()
    }


def find(arch: Arch, kind: str, problem: str, family: str | None = None) -> Entry | None:
    """Return the best known settings for a problem, of one family if it is given."""
    entries = best_known(arch).get(kind, {}).get(problem, [])
    return next((entry for entry in entries if family in (None, entry.family)), None)


def save(arch: Arch, table: Table) -> None:
    """Write a table, a line a setting, so that a change is easy to read."""
    lines = [
        f"  {json.dumps(kind)}: {{\n"
        + ",\n".join(_problem(*item) for item in problems.items())
        + "\n  }"
        for kind, problems in sorted(table.items())
    ]
    with replacing_file(path_of(arch)) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())
    load.cache_clear()


def _problem(problem: str, entries: list[Entry]) -> str:
    ordered = sorted(entries, key=lambda entry: entry.microseconds)
    lines = [
        "      "
        + json.dumps({"family": e.family, "us": round(e.microseconds, 2), "config": dict(e.config)})
        for e in ordered
    ]
    return f"    {json.dumps(problem)}: [\n" + ",\n".join(lines) + "\n    ]"
