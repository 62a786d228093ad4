"""Work given to processes, of which some die: every job is done, and none counts twice."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fewbit.errors import UsageError
from fewbit.tune.workers import do_all


def square(number: int) -> int:
    return number * number


def die_once(job: tuple[str, int]) -> int:
    """The first to take job 3 kills its process."""
    folder, number = job
    if number == 3:
        try:
            os.mkdir(Path(folder) / "died")
        except FileExistsError:
            return number * number
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_in_this_process() -> None:
    assert list(do_all(square, [1, 2, 3])) == [(1, 1), (2, 4), (3, 9)]


def test_a_worker_dies(tmp_path: Path) -> None:
    jobs = [(str(tmp_path), number) for number in range(5)]
    results = list(do_all(die_once, jobs, "2"))
    assert sorted((job[1], outcome) for job, outcome in results) == [(n, n * n) for n in range(5)]
    assert (tmp_path / "died").is_dir()


def test_all_workers_die() -> None:
    with pytest.raises(UsageError, match="died 3 times"):
        list(do_all(die, [1], "2"))


@pytest.mark.parametrize("workers", ["0", "two", "-1"])
def test_no_workers(workers: str) -> None:
    with pytest.raises(UsageError, match="no workers"):
        list(do_all(square, [1], workers))
