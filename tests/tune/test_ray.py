"""Jobs on a real cluster of three nodes, one of which is killed: none is lost, none done twice."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fewbit.tune.workers import do_all

pytest.importorskip("ray")
JOBS = 8


def slow_square(job: tuple[str, int]) -> int:
    """Notes that it began, and takes a while."""
    folder, number = job
    Path(folder, f"{number}-{os.getpid()}").touch()
    time.sleep(3)
    return number * number


@pytest.mark.slow
def test_a_node_is_killed(tmp_path: Path) -> None:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    doomed = cluster.add_node(num_cpus=1)
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        cluster.wait_for_nodes()
        jobs = [(str(tmp_path), number) for number in range(JOBS)]
        found: list[tuple[tuple[str, int], int]] = []
        for pair in do_all(slow_square, jobs, "ray://given"):
            found.append(pair)
            if len(found) == 1:
                cluster.remove_node(doomed, allow_graceful=False)
        assert sorted((job[1], outcome) for job, outcome in found) == [
            (n, n * n) for n in range(JOBS)
        ]
        begun = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
        assert len(begun) >= JOBS
    finally:
        ray.shutdown()
        cluster.shutdown()
