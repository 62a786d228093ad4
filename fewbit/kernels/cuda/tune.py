"""Finding the best settings: compile all that are worth trying, and measure each.

Compiling needs no GPU and takes a second; measuring takes milliseconds. So plans are compiled by a
pool of processes that was started before CUDA was, and measured one by one as they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.pool import Pool
from typing import Any

from fewbit.errors import Error
from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.family import Config, Family
from fewbit.kernels.cuda.plan import Plan


@dataclass(frozen=True)
class Candidate:
    """Settings of a family for a problem."""

    family: Family[Any]
    problem: Any
    config: Config


@dataclass(frozen=True)
class Tried:
    """What came of a candidate: microseconds, or a reason."""

    candidate: Candidate
    microseconds: float | None
    reason: str | None = None


def candidates(families: Iterable[Family[Any]], problem: Any, arch: Arch) -> list[Candidate]:
    """Return all settings of all families that can compute a problem."""
    return [
        Candidate(family, problem, config)
        for family in families
        if family.refuse(problem, arch) is None
        for config in family.configs(problem, arch)
    ]


def compile_candidates(
    pool: Pool, tries: list[Candidate], arch: Arch, families: dict[str, Family[Any]]
) -> Iterator[tuple[Candidate, Plan | str]]:
    """Yield plans in the order of the candidates, or why there is none."""
    jobs = [
        pool.apply_async(_compile, (families[t.family.name].build, t.problem, t.config, arch))
        for t in tries
    ]
    for candidate, job in zip(tries, jobs, strict=True):
        yield candidate, job.get()


def tune(
    pool: Pool,
    tries: list[Candidate],
    arch: Arch,
    families: dict[str, Family[Any]],
    measure: Callable[[Candidate, Plan], float],
) -> list[Tried]:
    """Return every candidate's time, fastest first; those that failed last."""
    tried: list[Tried] = []
    for candidate, plan in compile_candidates(pool, tries, arch, families):
        if isinstance(plan, str):
            tried.append(Tried(candidate, None, plan))
            continue
        try:
            tried.append(Tried(candidate, measure(candidate, plan)))
        except Error as error:
            tried.append(Tried(candidate, None, error.what))
    return sorted(tried, key=lambda t: (t.microseconds is None, t.microseconds or 0.0))


def _compile(
    build: Callable[[Any, Config, Arch], Plan], problem: Any, config: Config, arch: Arch
) -> Plan | str:
    try:
        return build(problem, config, arch)
    except Exception as error:  # a worker must not take the pool down
        return f"{type(error).__name__}: {error}"
