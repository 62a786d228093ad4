"""Candidates on a Ray cluster: the same numbers, also where a node is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import fewbit
from fewbit.errors import Error, UsageError
from fewbit.search.cluster import read_workers
from fewbit.search.portable import pack_program, unpack_program
from fewbit.search.result import Result
from tests.search.models import images, small
from tests.search.test_search import rows

OPTIONS: dict[str, Any] = {
    "budget": {"size": 0.5},
    "weights": (1, 2, 4, 8),
    "rules": ("max",),
    "free_ends": True,
    "searcher": "random",
}


def test_workers_are_a_number_or_a_cluster() -> None:
    assert read_workers("3") == 3
    assert read_workers(2) == 2
    assert read_workers("ray://local") == "ray://local"
    for wrong in ("0", "-1", "many", "http://host"):
        with pytest.raises(UsageError, match="is no number of workers"):
            read_workers(wrong)


def test_a_program_travels_as_bytes() -> None:
    program = fewbit.import_model(small(), (images().train_x[:1],))
    again, folder = unpack_program(pack_program(program))
    with folder:
        assert again.text() == program.text()
        assert (again(images().test_x[:1]) == program(images().test_x[:1])).all()


def search(workers: int | str, folder: Path, trials: int, **options: Any) -> Result:
    given = OPTIONS | options
    return fewbit.search(
        small(), data=images(), workers=workers, output=folder, trials=trials, **given
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"qat": 1, "searcher": "random"}])
def test_a_cluster_finds_what_one_process_does(tmp_path: Path, options: dict[str, Any]) -> None:
    pytest.importorskip("ray")
    found = search("ray://local", tmp_path / "cluster", 4, **options)
    alone = search(1, tmp_path / "alone", 4, **options)
    assert [p.schemes for p in found.points] == [p.schemes for p in alone.points]
    for one, other in zip(found.points, alone.points, strict=True):
        assert one.metrics["loss"] == pytest.approx(other.metrics["loss"], rel=1e-3)


@pytest.mark.slow
def test_a_program_is_searched_on_a_cluster(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    program = fewbit.import_model(small(), (images().train_x[:1],))
    result = fewbit.search(
        program, data=images(), samples=8, workers="ray://local", trials=2, **OPTIONS
    )
    assert result.best is not None


def test_no_cluster_at_an_address_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(Error, match="no Ray cluster at ray://auto"):
        search("ray://auto", tmp_path, 2)


SLOW_MODEL = """
import sys, time
from pathlib import Path
import fewbit
from tests.search.models import images, small

def slowly(outputs, labels):
    time.sleep(0.4)
    return float((outputs.argmax(-1) == labels).mean())

fewbit.search(
    small(), data=images(), workers="ray://auto", output=sys.argv[1], trials=24,
    objective=slowly, budget={"size": 0.5}, weights=(1, 2, 4, 8), rules=("max",),
    free_ends=True, searcher="random",
)
"""


@contextmanager
def two_nodes(folder: Path) -> Generator[tuple[dict[str, str], int]]:
    """Start a cluster of two nodes of one processor; yield how to reach it, and one's process."""
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root, "RAY_USAGE_STATS_ENABLED": "0"}
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=1", "--block"]
    common = ["--node-ip-address=127.0.0.1", "--object-store-memory=100000000"]
    port, address = "--port=6399", "127.0.0.1:6399"
    first = [*ray, *common, "--head", port, "--include-dashboard=false", f"--temp-dir={folder}"]
    second = [*ray, *common, f"--address={address}"]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in (first, second):
            processes.append(subprocess.Popen(command, env=environment, start_new_session=True))
            time.sleep(8)
        yield environment | {"RAY_ADDRESS": address}, processes[1].pid
    finally:
        for process in processes[::-1]:
            kill_group(process.pid)
            process.wait()


def kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_node_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    folder = tmp_path / "run"
    with two_nodes(tmp_path / "ray") as (environment, node):
        child = subprocess.Popen([sys.executable, "-c", SLOW_MODEL, str(folder)], env=environment)
        end = time.monotonic() + 120
        while not (folder / "evaluations.sqlite").is_file() or len(rows(folder)) < 8:
            assert time.monotonic() < end
            assert child.poll() is None
            time.sleep(0.1)
        kill_group(node)
        assert child.wait(timeout=120) == 0
    assert Result.load(folder).done == 24
