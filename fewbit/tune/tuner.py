"""What a tuner of a target's settings is: `fewbit tune` asks the target for one, by its place.

A tuner times what it finds on this machine. One that can also `prepare` compiles candidates into a
folder, which another machine measures.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.targets.registry import all_targets, find_target
from fewbit.targets.tuner import KnownSettings
from fewbit.tune.database import Database
from fewbit.tune.report import Report, Row

if TYPE_CHECKING:
    from fewbit.cost.loops.programs import Listing
    from fewbit.tune.prepared import Prepared


@dataclass(frozen=True)
class Search:
    """What is asked of a tuner."""

    program: Program
    target: str
    """As the user wrote it, `cuda:sm_90`."""
    database: Database
    seconds: float = 300.0
    model: str = "analytic"
    """What ranks candidates."""
    workers: str = "1"
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The target's own, by their names in Python, checked."""
    watch: Callable[[Row], None] = lambda row: None
    """Told of each op as it is done."""


@dataclass(frozen=True)
class Exported:
    """What a database has, in the form of another tool."""

    text: str
    ops: int
    left_out: int
    """Ops that cannot be said so."""


class Tuner(KnownSettings):
    """What searches for the fastest settings of a target's programs."""

    timed: str = "one thread"
    """How programs are timed, for the title of a report."""
    batch_of_one: bool = True
    """Whether a model is searched with a batch of one where that is free: it holds for any."""
    can_prepare: bool = False
    can_export: bool = False

    def takes(self, detail: str) -> bool:
        """Return whether it tunes for what follows the colon of a target."""
        return not detail

    def check(self, target: str) -> None:
        """Refuse what cannot be searched for on this machine, before any work is done."""

    @abstractmethod
    def search(self, search: Search) -> Report:
        """Search, and keep what is faster."""

    def prepare(self, search: Search, folder: Path, title: str) -> Prepared:
        """Compile candidates into a folder."""
        raise NotImplementedError

    def measure(self, folder: Path, database: Database) -> tuple[Report, str]:
        """Time what was prepared, and keep what is faster; return the report and its title."""
        raise NotImplementedError

    def list_loops(self, program: Program, dynamic: int) -> Listing:
        """Return the loop nests that are tuned, with the layers that they come from."""
        raise NotImplementedError

    def export(self, database: Database) -> Exported:
        """Return what the database has, for another tool."""
        raise NotImplementedError


def find_tuner(target: str) -> Tuner:
    """Return the tuner of a target."""
    kind = find_target(target)
    tuner = None if kind.tuner is None else kind.load_tuner()
    if not isinstance(tuner, Tuner) or not tuner.takes(TargetName.parse(target).detail):
        raise UsageError(
            f"there is no autotuning for {target}",
            hint=f"targets that can be tuned are {', '.join(tuned_targets())}",
        )
    return tuner


def find_preparing_tuner(target: str) -> Tuner:
    """Return the tuner of a target that can compile candidates for another machine."""
    tuner = find_tuner(target)
    if not tuner.can_prepare:
        names = [name for name in tuned_targets() if find_tuner(name).can_prepare]
        raise UsageError(
            f"candidates for {target} are measured where they are compiled",
            hint=f"prepare is for GPUs: -t {' or -t '.join(names)}",
        )
    return tuner


def find_exporting_tuner(target: str) -> Tuner:
    """Return the tuner of a target that can export what was found to another tool."""
    tuner = find_tuner(target)
    if not tuner.can_export:
        names = [name for name in tuned_targets() if find_tuner(name).can_export]
        raise UsageError(
            f"what was found for {target} cannot be exported", hint=f"-t {' or -t '.join(names)}"
        )
    return tuner


def tuned_targets() -> list[str]:
    """Return names of the targets that can be tuned."""
    return [target.name for target in all_targets() if target.tuner is not None]
