"""A program's dispatches, searched for tiles one by one, those that take longest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from fewbit.cost.hardware import Hardware
from fewbit.cost.hardware.host import host
from fewbit.targets.iree.dispatches import read_dispatches
from fewbit.tune.database import Database, Key, versions_of
from fewbit.tune.iree.build import Build
from fewbit.tune.iree.configured import FUSED, Configured
from fewbit.tune.iree.measured import Measured
from fewbit.tune.job import Job, run_job
from fewbit.tune.report import Row
from fewbit.tune.schedule import Schedule
from fewbit.tune.workers import do_all

TARGET = "iree-cpu"
PACKAGES = ("iree-base-compiler",)
SHARE = 4.0
"""How much more time than its share of the whole an op may take, while there is any."""
LEAST_SHARE = 20.0
"""Seconds that any op may take."""


def key_of(dispatch: Configured, hardware: Hardware) -> Key:
    return Key(TARGET, dispatch.signature, hardware.identity, versions_of(*PACKAGES))


def tune_dispatches(
    build: Build,
    database: Database,
    *,
    seconds: float,
    model: str = "analytic",
    workers: str = "1",
    hardware: Hardware | None = None,
    watch: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Return all dispatches that a program calls; `watch` is told of each as it is done."""
    hardware = hardware or host()
    end = monotonic() + seconds
    calls = calls_of(build)
    rows: list[Row] = []
    work: dict[str, tuple[Configured, Row]] = {}
    for dispatch in build.dispatches:
        count = calls.get(dispatch.name, 0)
        if not count:
            continue
        row = _look_at(dispatch, count)
        if row.reason is not None:
            rows.append(row)
            continue
        same = work.get(dispatch.signature)
        more = same[1].calls if same else 0
        work[dispatch.signature] = (dispatch, replace(row, calls=row.calls + more))
    order = sorted(work.values(), key=lambda w: -w[1].calls * (w[1].seconds or 0.0))
    jobs = _jobs(order, database, hardware, model, end)
    names = {job.key.signature: row for job, (_, row) in zip(jobs, order, strict=True)}
    serial = workers == "1"

    def work_on(job: Job):
        left = max(0.0, end - monotonic())
        return run_job(replace(job, seconds=min(job.seconds, left)), database)

    outcomes = do_all(work_on if serial else run_job, jobs, workers)
    for job, outcome in outcomes:
        for trial in outcome.trials:
            database.add_trial(job.key, trial)
        if not serial and outcome.result.trials:
            database.put(outcome.result)
        row = replace(names[job.key.signature], result=outcome.result)
        watch(row)
        rows.append(row)
    return rows


def _look_at(dispatch: Configured, calls: int) -> Row:
    """Return how long a dispatch takes, or why its tiles are left to IREE."""
    if dispatch.reason is not None:
        return Row(dispatch.name, calls, None, None, dispatch.reason)
    with TemporaryDirectory(prefix="fewbit-look-") as folder:
        measured = Measured(dispatch, Path(folder))
        reason = measured.can(dispatch.nest)
        seconds = None if reason else measured.default_seconds()
    return Row(dispatch.name, calls, seconds, None, reason, dispatch.nest.macs)


def _jobs(
    order: list[tuple[Configured, Row]],
    database: Database,
    hardware: Hardware,
    model: str,
    end: float,
) -> list[Job]:
    left = max(0.0, end - monotonic())
    each = max(LEAST_SHARE, SHARE * left / max(1, len(order)))
    jobs: list[Job] = []
    for dispatch, _ in order:
        key = key_of(dispatch, hardware)
        known = tuple(database.trials(key).values())
        jobs.append(
            Job(key, dispatch.name, dispatch.text, hardware, model, known=known, seconds=each)
        )
    return jobs


def calls_of(build: Build) -> dict[str, int]:
    flow = build.made.phases.get("flow", "")
    return {d.name: d.calls for d in read_dispatches(flow) if not d.at_load}


def leading_schedules(database: Database, target: str, hardware: str) -> dict[str, Schedule]:
    """Return the schedule of each op that leads dispatches, from the one that gained most."""
    versions = versions_of(*PACKAGES)
    best: dict[str, tuple[float, Schedule]] = {}
    for result in database.results(target):
        if (result.key.hardware, result.key.versions) != (hardware, versions):
            continue
        if result.schedule is not None:
            op = result.key.signature.partition(FUSED)[0]
            best[op] = min(
                best.get(op, (1.0, result.schedule)),
                (result.ratio, result.schedule),
                key=lambda pair: pair[0],
            )
    return {op: schedule for op, (_, schedule) in best.items()}
