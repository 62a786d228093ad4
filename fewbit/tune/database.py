"""What searches found, kept for later compiles: an SQLite file, by op, hardware and versions.

Each trial is a transaction of its own, so a search that is killed goes on where it was, and several
processes may search at once. Times of different runs do not compare; what is kept of a trial is its
ratio to the default, timed by turns with it.

The usual database was not asked for by name: where that is damaged, a compile says so once and goes
on without it. A search, or a database that was named, stops instead; nothing is ever removed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from fewbit.base.progress import say
from fewbit.errors import Error, Place
from fewbit.targets.tuner import default_path
from fewbit.tune.schedule import Schedule

T = TypeVar("T")

FORMAT = 1
TABLES = """
create table if not exists trials (
    target text, signature text, hardware text, versions text, schedule text,
    ratio real, reason text,
    primary key (target, signature, hardware, versions, schedule)) without rowid;
create table if not exists results (
    target text, signature text, hardware text, versions text,
    schedule text, ratio real, noise real, seconds real, trials integer, model text, reason text,
    date text, primary key (target, signature, hardware, versions)) without rowid;
"""
WAIT = 60.0
"""Seconds to wait for another process's transaction."""


@dataclass(frozen=True)
class Key:
    """What a result holds for."""

    target: str
    """The kind, `iree-cpu`."""
    signature: str
    hardware: str
    versions: str

    @property
    def row(self) -> tuple[str, str, str, str]:
        return self.target, self.signature, self.hardware, self.versions


@dataclass(frozen=True)
class Trial:
    """A schedule that was tried: its time, or why it has none."""

    schedule: Schedule
    ratio: float | None
    """Its time by that of the default; None where it failed."""
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True)
class Result:
    """What a search found for one op."""

    key: Key
    schedule: Schedule | None
    """None where the default was not beaten."""
    ratio: float
    """The time by that of the default; 1 where that was kept."""
    noise: float
    """How much two runs of the default differed, as a part of its time."""
    seconds: float
    """Seconds of the default."""
    trials: int
    model: str
    """The cost model that chose what was tried."""
    reason: str = ""


def versions_of(*packages: str) -> str:
    """Return what a result depends on besides the op and the hardware."""
    return " ".join([f"format={FORMAT}", *(f"{name}={_version(name)}" for name in packages)])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


class Database:
    """The results in one file, which need not exist yet."""

    def __init__(self, path: Path | None = None, *, forgiving: bool = False) -> None:
        """Open a database; a `forgiving` one is empty where it cannot be read."""
        self.path = path or default_path()
        self._forgiving = forgiving

    def add_trial(self, key: Key, trial: Trial) -> None:
        values = (*key.row, _text(trial.schedule), trial.ratio, trial.reason)
        with self._writing() as file:
            file.execute("insert or replace into trials values (?,?,?,?,?,?,?)", values)

    def trials(self, key: Key) -> dict[Schedule, Trial]:
        query = f"select schedule, ratio, reason from trials where {_WHERE}"
        trials = self._read(query, key.row, _trial)
        return {trial.schedule: trial for trial in trials}

    def put(self, result: Result) -> None:
        values = (
            *result.key.row,
            None if result.schedule is None else _text(result.schedule),
            *(result.ratio, result.noise, result.seconds, result.trials),
            *(result.model, result.reason, datetime.now(UTC).isoformat(timespec="seconds")),
        )
        with self._writing() as file:
            file.execute(f"insert or replace into results values ({','.join('?' * 12)})", values)

    def get(self, key: Key) -> Result | None:
        results = self._results(f"where {_WHERE}", key.row)
        return results[0] if results else None

    def results(self, target: str | None = None) -> list[Result]:
        """Return all results, or those of a target, in the order of their signatures."""
        where = "where target=? order by signature" if target else "order by signature"
        return self._results(where, (target,) if target else ())

    def holds(self, target: str, hardware: str, versions: str) -> bool:
        """Return whether anything is known for these: a quick look before any work."""
        query = "select 1 from results where target=? and hardware=? and versions=? limit 1"
        return bool(self._read(query, (target, hardware, versions), bool))

    def _results(self, where: str, values: tuple[str, ...]) -> list[Result]:
        columns = "target, signature, hardware, versions, schedule, ratio, noise, seconds, trials"
        query = f"select {columns}, model, reason from results {where}"
        return self._read(query, values, _result)

    def _read(self, query: str, values: tuple[str, ...], of: Callable[[Any], T]) -> list[T]:
        if not self.path.is_file():
            return []
        try:
            with self._open() as file:
                return [of(row) for row in file.execute(query, values)]
        except Error as e:
            if not self._forgiving:
                raise
            _say_once(f"{e.place}: {e.what}: programs are compiled without tuned tiles")
            return []

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as file, file:
            yield file

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT)) as file:
                file.executescript(TABLES)
                yield file
        except (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError) as e:
            raise Error(
                f"the tuning database cannot be used: {e}",
                place=Place(file=str(self.path)),
                hint="give another with --tuning-db, or move the file away",
            ) from e


_WHERE = "target=? and signature=? and hardware=? and versions=?"


@cache
def _say_once(message: str) -> None:
    say(message)


def _trial(row: tuple[Any, ...]) -> Trial:
    text, ratio, reason = row
    return Trial(_schedule(text), None if ratio is None else float(ratio), str(reason))


def _result(row: tuple[Any, ...]) -> Result:
    target, signature, hardware, versions, text, *numbers, trials, model, reason = row
    ratio, noise, seconds = map(float, numbers)
    key = Key(str(target), str(signature), str(hardware), str(versions))
    schedule = None if text is None else _schedule(text)
    return Result(key, schedule, ratio, noise, seconds, int(trials), str(model), str(reason))


def _text(schedule: Schedule) -> str:
    return json.dumps(schedule.as_json())


def _schedule(text: str) -> Schedule:
    return Schedule.from_json(json.loads(text))
