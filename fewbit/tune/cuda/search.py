"""The search on a GPU: what is worth compiling next, and what becomes of what was measured.

The same for all targets: an op has ranked schedules and a way to compile one. A round takes some
of them, compiles, and measures; a first round tries what differs most among those ranked best, a
later one what is like the fastest so far. Trials are in the database, so rounds may be days and
machines apart. The default stays unless it is beaten beyond the noise, twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from fewbit.base.progress import progress
from fewbit.errors import Error, UsageError
from fewbit.tune.cuda.measure import measure, read_measured
from fewbit.tune.database import Database, Key, Result, Trial
from fewbit.tune.prepared import (
    MEASURED,
    Candidate,
    Op,
    Prepared,
    Region,
    read_prepared,
    trial_of,
    write_prepared,
)
from fewbit.tune.report import Row
from fewbit.tune.schedule import Schedule

FIRST, AROUND, ROUNDS = 16, 12, 3
"""Schedules of a first round and of later ones, and how many rounds there are."""
FEW_THREADS, FAR_APART = 64, 100
FAR = 4.0
"""Times as slow as the best, by the model, that a kind of schedule may be and still be tried."""


@dataclass(frozen=True)
class Space:
    """An op, and all that may be tried for it."""

    key: Key
    name: str
    calls: int
    macs: int
    regions: tuple[Region, ...]
    tolerance: Mapping[str, float]
    default: Callable[[], Candidate]
    candidate: Callable[[Schedule], Candidate]
    """Compiles; an error says why it cannot be."""
    rank: Callable[[], list[tuple[float, Schedule]]]
    """All schedules with what the model thinks of them, the best first."""
    model: str = "analytic"


def prepare(
    folder: Path,
    spaces: Sequence[Space],
    database: Database,
    *,
    target: str,
    arch: str,
    title: str,
    left: Mapping[str, tuple[int, str]],
    workers: int = 1,
    deadline: float = float("inf"),
    first: int = FIRST,
    around: int = AROUND,
) -> Prepared:
    """Compile the next round of each op into a folder; ops for which there is no time are left."""
    ops: list[Op] = []
    missed = dict(left)
    for number, space in enumerate(spaces, 1):
        if monotonic() > deadline:
            missed[space.name] = (space.calls, "no time was left")
            continue
        known = database.trials(space.key)
        with progress(f"Compiling {space.name} ({number} of {len(spaces)})"):
            ops.append(prepare_op(space, known, workers, around if known else first))
    prepared = Prepared(target, arch, title, tuple(ops), missed)
    write_prepared(folder, prepared)
    return prepared


def prepare_op(space: Space, known: Mapping[Schedule, Trial], workers: int, count: int) -> Op:
    """Compile so many schedules of an op."""
    wanted = choose(space.rank(), known, count)
    candidates: list[Candidate] = []
    failed: list[Trial] = []

    def compile_one(schedule: Schedule) -> Candidate | Trial:
        try:
            return space.candidate(schedule)
        except Error as e:
            return Trial(schedule, None, e.what)

    with ThreadPoolExecutor(workers) as pool:
        for candidate in pool.map(compile_one, wanted):
            if isinstance(candidate, Candidate):
                candidates.append(candidate)
            else:
                failed.append(candidate)
    return Op(
        space.key,
        space.name,
        space.calls,
        space.macs,
        space.regions,
        (space.default(), *candidates),
        tuple(failed),
        space.tolerance,
        space.model,
    )


def choose(
    ranked: Sequence[tuple[float, Schedule]], known: Mapping[Schedule, Trial], count: int
) -> list[Schedule]:
    """Choose what to try next: the best of each kind, then neighbours of the fastest."""
    timed = [t for t in known.values() if t.ratio is not None]
    leader = min(timed, key=lambda t: t.ratio or 0.0, default=None)
    fresh = [(cost, s) for cost, s in ranked if s not in known]
    if leader is None:
        return _vary(fresh, count)
    like = sorted(fresh, key=lambda pair: (_distance(pair[1], leader.schedule), pair[0]))
    near = [s for _, s in like[: count - count // 4]]
    return near + [s for s in _vary(fresh, count) if s not in near][: count // 4]


def _vary(ranked: Sequence[tuple[float, Schedule]], count: int) -> list[Schedule]:
    """Take schedules from each kind by turns, every tile of a thread once at first."""
    best = ranked[0][0] if ranked else 0.0
    kinds: dict[Any, dict[Any, list[Schedule]]] = {}
    for cost, schedule in ranked:
        if cost <= FAR * best or not kinds:
            tiles = kinds.setdefault(_kind(schedule), {})
            tiles.setdefault(_tile(schedule), []).append(schedule)
    queues = [
        [each[turn] for turn in range(count) for each in tiles.values() if turn < len(each)]
        for tiles in kinds.values()
    ]
    chosen: list[Schedule] = []
    for turn in range(count):
        chosen += [queue[turn] for queue in queues if turn < len(queue)]
    return chosen[:count]


def _kind(schedule: Schedule) -> Any:
    """Return a kernel's name, or a tile's instructions and whether its threads are few."""
    how = dict(schedule.how)
    if "kernel" in how:
        return how["kernel"]
    pairs = zip(schedule.distribution, schedule.vector, strict=True)
    threads = prod(group // max(1, size) for group, size in pairs if group)
    return schedule.how, threads <= FEW_THREADS


def _tile(schedule: Schedule) -> Any:
    """Return the thread's results without the steps of a sum, which matter less."""
    if not schedule.vector:
        return schedule.how
    pairs = zip(schedule.vector, schedule.distribution, strict=True)
    return tuple(size for size, group in pairs if group)


def _distance(a: Schedule, b: Schedule) -> int:
    """Return in how many numbers two differ; words differ wholly."""
    names = [name for name, _ in a.how]
    if len(a.vector) != len(b.vector) or names != [name for name, _ in b.how]:
        return FAR_APART
    left = (*a.distribution, *a.vector, *(value for _, value in a.how))
    right = (*b.distribution, *b.vector, *(value for _, value in b.how))
    pairs = [(x, y) for x, y in zip(left, right, strict=True) if x != y]
    return sum(FAR_APART if isinstance(x, str) else 1 for x, _ in pairs)


def record(folder: Path, database: Database) -> list[Row]:
    """Put what was measured into the database; a row for each op."""
    prepared = read_prepared(folder)
    if not (folder / MEASURED).is_file():
        raise UsageError(
            "the candidates are not measured yet",
            hint=f"on a machine with a GPU: fewbit tune measure {folder}",
        )
    measured = {tuple(each["key"]): each for each in read_measured(folder)}
    rows = [
        _record(op, measured[op.key.row], database) for op in prepared.ops if op.key.row in measured
    ]
    left = [Row(n, calls, None, None, why) for n, (calls, why) in prepared.left.items()]
    return [*rows, *left]


def _record(op: Op, measured: Mapping[str, Any], database: Database) -> Row:
    trials = [*op.failed, *map(trial_of, measured["trials"])]
    for trial in trials:
        database.add_trial(op.key, trial)
    known = database.trials(op.key)
    before = database.get(op.key)
    seconds, noise = measured["seconds"], measured["noise"]
    again = measured["again"]
    if again is not None:
        schedule = Schedule.from_json(measured["best"])
        ratio = known[schedule].ratio or 1.0
        result = Result(op.key, schedule, max(again, ratio), noise, seconds, len(known), op.model)
        if before is None or before.schedule is None or result.ratio < before.ratio:
            database.put(result)
    elif before is None:
        reason = "the default was not beaten"
        database.put(Result(op.key, None, 1.0, noise, seconds, len(known), op.model, reason))
    return Row(op.name, op.calls, seconds, database.get(op.key), None, op.macs)


def search(
    spaces: Sequence[Space],
    database: Database,
    *,
    target: str,
    arch: str,
    seconds: float,
    workers: int = 1,
    watch: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Compile and measure here in rounds, op by op, as long as there is time."""
    end = monotonic() + seconds
    rows: dict[str, Row] = {}
    for turn in range(ROUNDS):
        for number, space in enumerate(spaces):
            if monotonic() > end:
                break
            with TemporaryDirectory(prefix="fewbit-round-") as temporary:
                folder = Path(temporary)
                share = (end - monotonic()) / (len(spaces) - number)
                prepare(
                    folder,
                    [space],
                    database,
                    target=target,
                    arch=arch,
                    title=space.name,
                    left={},
                    workers=workers,
                    deadline=monotonic() + share,
                )
                measure(folder)
                (row,) = record(folder, database)
            rows[space.name] = row
            if turn == ROUNDS - 1:
                watch(row)
    missed = [Row(s.name, s.calls, None, None, "no time was left", s.macs) for s in spaces]
    return [rows.get(row.name, row) for row in missed]
