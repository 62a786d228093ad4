"""Candidates evaluated on a Ray cluster, for `--workers ray://...`.

A thread waits for each task, so evaluations keep their claims in this process's store, and nothing
else need know where they ran. The model and the data go to the cluster once, and a process there
keeps what it unpacked. What was running on a node that is lost runs again on another one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from fewbit.errors import Error, UsageError
from fewbit.quant.scheme import LayerScheme
from fewbit.search.data import Examples
from fewbit.search.evaluation import Measure
from fewbit.search.extras import import_extra
from fewbit.search.objective import Metrics
from fewbit.search.subject import Schemes

PREFIX = "ray://"
LOCAL, RUNNING = "local", "auto"
"""A cluster that is started for the search on this machine, and one that runs here already."""
ATTEMPTS = 5
"""How often a task is tried again where nodes are lost."""

_unpacked: dict[str, Measure] = {}
"""What a process of the cluster was given before."""


def read_workers(text: str | int) -> int | str:
    """Return how many workers a text asks for, or the address of a cluster.

    That Ray is missing is said before any work.
    """
    if isinstance(text, int):
        return text
    if text.startswith(PREFIX):
        import_extra("ray", "ray", "cluster")
        return text
    if not text.isdigit() or not int(text):
        raise UsageError(
            f"'{text}' is no number of workers",
            hint="write --workers 2, or ray://local, ray://auto, ray://HOST:10001",
        )
    return int(text)


@dataclass
class Cluster:
    """A cluster that this process is connected to."""

    ray: Any
    workers: int
    """The processors that it had when the search began."""

    def spread(self, measure: Measure, parts: Iterable[object]) -> Measure:
        """Return a measure whose calls run on the cluster; its parts may be of any module."""
        _pack_by_value(self.ray, parts)
        return OnCluster(self.ray, measure, self.ray.put(measure))


@dataclass
class OnCluster:
    """Runs another measure in tasks."""

    ray: Any
    measure: Measure
    packed: Any
    token: str = field(default_factory=lambda: uuid4().hex)
    _parts: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    _guard: Lock = field(default_factory=Lock, repr=False)

    @property
    def how(self) -> str:
        return self.measure.how

    def __call__(self, schemes: Schemes, part: Examples) -> tuple[Metrics, int]:
        task = self.ray.remote(_run).options(num_cpus=1, max_retries=ATTEMPTS)
        texts = {name: str(scheme) for name, scheme in schemes.items()}
        # A reference in a list is handed over as it is, and fetched only where it is new.
        running = task.remote(self.token, [self.packed], texts, [self._sent(part)])
        try:
            return self.ray.get(running)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError as error:
            raise Error(
                f"the cluster lost a candidate: {str(error).partition(chr(10))[0]}",
                hint="give the same command again: what was evaluated is kept",
            ) from error

    def _sent(self, part: Examples) -> Any:
        key = part.hash()
        with self._guard:
            if key not in self._parts:
                self._parts[key] = self.ray.put(part)
            return self._parts[key]


def _run(
    token: str, packed: list[Any], texts: Mapping[str, str], part: list[Any]
) -> tuple[Metrics, int]:
    """Evaluate a candidate in a process of the cluster."""
    ray: Any = import_extra("ray", "ray", "cluster")
    if token not in _unpacked:
        _unpacked.clear()
        _unpacked[token] = ray.get(packed[0])
    schemes = {name: LayerScheme.of(text) for name, text in texts.items()}
    return _unpacked[token](schemes, ray.get(part[0]))


@contextmanager
def join_cluster(address: str) -> Generator[Cluster]:
    """Yield a cluster; one that was started here ends behind it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    ray: Any = import_extra("ray", "ray", "cluster")
    place = address.removeprefix(PREFIX)
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        if place == LOCAL:
            local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            ray.init(address=LOCAL, **local, **quiet)
        else:
            ray.init(address=RUNNING if place == RUNNING else address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise Error(
            f"no Ray cluster at {address}: {str(error).partition(chr(10))[0]}",
            hint=f"start one with 'ray start --head', or give --workers {PREFIX}{LOCAL}",
        ) from error
    try:
        yield Cluster(ray, max(1, int(ray.cluster_resources().get("CPU", 1))))
    finally:
        ray.shutdown()


def _pack_by_value(ray: Any, parts: Iterable[object]) -> None:
    """Have the code of a user's own modules travel along, which no other machine could import."""
    for part in parts:
        name = getattr(part, "__module__", None) or type(part).__module__
        for module in {name, type(part).__module__}:
            found = sys.modules.get(module)
            file = getattr(found, "__file__", None)
            if found is not None and file is not None and not _is_installed(Path(file)):
                ray.cloudpickle.register_pickle_by_value(found)


def _is_installed(file: Path) -> bool:
    import fewbit

    own = Path(fewbit.__file__).parent
    return "site-packages" in file.parts or file.is_relative_to(own)
