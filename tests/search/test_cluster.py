"""Candidates on a Ray cluster: the same numbers, also where a node is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fewbit
from fewbit.errors import Error, MissingToolError, UsageError
from fewbit.search.cluster import read_workers
from fewbit.search.portable import pack_program, unpack_program
from fewbit.search.result import Result
from tests.search.models import images, small
from tests.search.test_search import count

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
    for wrong in ("0", "-1", "many", "http://host"):
        with pytest.raises(UsageError, match="is no number of workers"):
            read_workers(wrong)


def test_a_cluster_needs_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingToolError, match="needs ray"):
        read_workers("ray://local")


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
def two_nodes() -> Generator[tuple[Any, Any]]:
    """Start a cluster of two nodes of one processor; yield it, and the node that is not its head."""
    utils: Any = pytest.importorskip("ray.cluster_utils")
    common = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}
    cluster = utils.Cluster(initialize_head=True, head_node_args=common)
    try:
        yield cluster, cluster.add_node(**common)
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_a_node_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with two_nodes() as (cluster, node):
        path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
        environment = os.environ | {"PYTHONPATH": path, "RAY_ADDRESS": cluster.address}
        child = subprocess.Popen([sys.executable, "-c", SLOW_MODEL, str(folder)], env=environment)
        end = time.monotonic() + 120
        while count(folder) < 8:
            assert time.monotonic() < end
            assert child.poll() is None
            time.sleep(0.1)
        assert count(folder) < 20
        cluster.remove_node(node, allow_graceful=False)
        assert child.wait(timeout=180) == 0
    assert Result.load(folder).done == 24
