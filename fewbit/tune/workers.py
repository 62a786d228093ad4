"""Who does the jobs: this process, several on this machine, or a Ray cluster.

Each gives the outcomes as they come, every job's exactly once. A job whose worker died is given to
another; after a few deaths it is taken to be the job's own fault, and said so.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

from fewbit.base.progress import say
from fewbit.base.start import SAFE
from fewbit.errors import MissingToolError, UsageError

T = TypeVar("T")
R = TypeVar("R")

DEATHS = 3
"""How many workers of a job may die before it is given up."""
RAY = "ray://"
LOCAL = f"{RAY}local"
"""A cluster that Ray starts on this machine, for as long as the search lasts."""

Work = Callable[[T], R]


def do_all(work: Work[T, R], jobs: Sequence[T], workers: str = "1") -> Iterator[tuple[T, R]]:
    """Yield the jobs with their outcomes, in the order in which they end."""
    if workers.startswith(RAY):
        yield from _on_ray(work, jobs, workers)
        return
    count = _count(workers)
    if count == 1:
        for job in jobs:
            yield job, work(job)
        return
    yield from _on_processes(work, jobs, count)


def _count(workers: str) -> int:
    if not workers.isdecimal() or not int(workers):
        raise UsageError(
            f"'{workers}' are no workers",
            hint="a number of processes, ray://HOST:PORT, or ray://local",
        )
    return int(workers)


def _on_processes(work: Work[T, R], jobs: Sequence[T], count: int) -> Iterator[tuple[T, R]]:
    """Yield a pool breaks as a whole when one of its processes dies; what is left starts anew."""
    left = dict(enumerate(jobs))
    deaths = 0
    while left:
        try:
            with _safe(), ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
                running: dict[Future[R], int] = {
                    pool.submit(work, job): number for number, job in left.items()
                }
                for future in as_completed(running):
                    outcome = future.result()
                    yield left.pop(running[future]), outcome
        except BrokenProcessPool:
            deaths += 1
            say(f"a worker died; {len(left)} jobs are left")
            if deaths == DEATHS:
                raise UsageError(
                    f"workers died {DEATHS} times", hint="use fewer: --workers 1"
                ) from None


@contextmanager
def _safe() -> Generator[None]:
    """Keep processes that start now from importing from the current folder."""
    before = {name: os.environ.get(name) for name in SAFE}
    os.environ.update(SAFE)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _on_ray(work: Work[T, R], jobs: Sequence[T], address: str) -> Iterator[tuple[T, R]]:
    try:
        import ray as found
    except ImportError as e:
        raise MissingToolError("Ray is not installed", hint="pip install 'fewbit[cluster]'") from e
    ray: Any = found
    ours = not ray.is_initialized()
    if ours:
        where = None if address == LOCAL else address
        ray.init(address=where, log_to_driver=False, include_dashboard=False)
    try:
        yield from _remote(ray, work, jobs)
    finally:
        if ours:
            ray.shutdown()


def _remote(ray: Any, work: Work[T, R], jobs: Sequence[T]) -> Iterator[tuple[T, R]]:
    remote = ray.remote(max_retries=0, num_cpus=1)(work)
    left = dict(enumerate(jobs))
    deaths: dict[int, int] = {}
    running = {remote.remote(job): number for number, job in left.items()}
    while running:
        (ready,), _ = ray.wait(list(running), num_returns=1)
        number = running.pop(ready)
        try:
            outcome = ray.get(ready)
        except (ray.exceptions.WorkerCrashedError, ray.exceptions.RayTaskError) as e:
            if isinstance(e, ray.exceptions.RayTaskError):
                raise
            _count_death(deaths, number)
            running[remote.remote(left[number])] = number
            continue
        except ray.exceptions.RaySystemError:
            _count_death(deaths, number)
            running[remote.remote(left[number])] = number
            continue
        yield left.pop(number), outcome


def _count_death(deaths: dict[int, int], number: int) -> None:
    deaths[number] = deaths.get(number, 0) + 1
    say(f"a worker died; job {number} is given to another")
    if deaths[number] == DEATHS:
        raise UsageError(f"the workers of job {number} died {DEATHS} times")
