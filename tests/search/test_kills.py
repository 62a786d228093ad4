"""A search that is killed again and again, at any moment, ends as one that never was."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import fewbit
from fewbit.search.result import Result
from fewbit.search.store import FILE
from tests.search.models import images, small

KILLS = 50
TRIALS = 60
OPTIONS: dict[str, Any] = {
    "budget": {"size": 0.5},
    "weights": (1, 1.58, 2, 3, 4, 6, 8),
    "free_ends": True,
}


def fork(work: Callable[[], object]) -> int:
    """Return the process that does some work; it shares what was imported and trained."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(0)


def rows(folder: Path) -> dict[str, str]:
    if not (folder / FILE).is_file():
        return {}
    with sqlite3.connect(folder / FILE) as file:
        if not file.execute("select 1 from sqlite_master where name='evaluations'").fetchone():
            return {}
        return dict(file.execute("select key, date || seconds || metrics from evaluations"))


def search(folder: Path, trials: int = TRIALS) -> Result:
    return fewbit.search(small(), data=images(), output=folder, trials=trials, **OPTIONS)


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_however_often_it_is_killed(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    search(tmp_path / "before", 1)  # what children share is made: the model and its data
    killed, whole = tmp_path / "killed", tmp_path / "whole"

    start = time.monotonic()
    expected = search(whole)
    duration = time.monotonic() - start
    chance = random.Random(0)
    known: dict[str, str] = {}
    for _ in range(KILLS):
        child = fork(lambda: search(killed))
        time.sleep(chance.random() * duration / 10)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = rows(killed)
        assert known.items() <= found.items()
        known = found
    result = search(killed)
    assert known.items() <= rows(killed).items()
    assert rows(killed).keys() == rows(whole).keys()
    assert result.points == expected.points
    assert result.best == expected.best
