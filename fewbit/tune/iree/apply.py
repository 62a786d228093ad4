"""What was found, put into a program: its dispatches get the tiles that the database has for them.

Two modules are made, with IREE's tiles and with ours. That the instructions of a dispatch differ is
looked up in its object code; that results do not is for the caller to see, who can run both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fewbit.base.progress import say
from fewbit.cost.hardware import Hardware
from fewbit.cost.hardware.host import host
from fewbit.errors import Error
from fewbit.targets.iree.source import Source
from fewbit.targets.iree.tuned import Modules
from fewbit.tune.database import Database, versions_of
from fewbit.tune.iree.build import Build, build
from fewbit.tune.iree.configured import Configured
from fewbit.tune.iree.gpu_tuning import TARGET as GPU
from fewbit.tune.iree.gpu_tuning import find_gpu_schedules, gpu_dispatches, gpu_hardware_of
from fewbit.tune.iree.layout import chosen_flags
from fewbit.tune.iree.tuning import PACKAGES, TARGET, key_of, leading_schedules
from fewbit.tune.schedule import Schedule


@dataclass(frozen=True)
class Applied:
    """A program compiled without and with the schedules of a database."""

    default: Build
    tuned: Build | None
    """None where nothing is known of the program's dispatches, or nothing had an effect."""
    schedules: Mapping[str, Schedule]
    """By dispatch; those without effect are not in it."""


def is_known(database: Database, hardware: Hardware | None = None, target: str = TARGET) -> bool:
    """Return whether a database has anything for this machine, or for the GPU of a target."""
    if target.startswith(GPU):
        return database.holds(GPU, gpu_hardware_of(target), versions_of(*PACKAGES))
    return database.holds(TARGET, (hardware or host()).identity, versions_of(*PACKAGES))


def find_schedules(
    dispatches: Sequence[Configured], database: Database, hardware: Hardware | None = None
) -> dict[str, Schedule]:
    """Return those that the database has, by the name of the dispatch.

    An op with a dynamic batch may be fused with other ops than with a batch of one: where the
    dispatch itself is not known, the op that leads it may be.
    """
    hardware = hardware or host()
    leading = leading_schedules(database, TARGET, hardware.identity)
    schedules: dict[str, Schedule] = {}
    for dispatch in dispatches:
        if not worth_reading(dispatch) or dispatch.reason is not None:
            continue
        result = database.get(key_of(dispatch, hardware))
        schedule = result.schedule if result else leading.get(dispatch.nest.signature)
        if schedule is not None:
            schedules[dispatch.name] = schedule
    return schedules


def worth_reading(dispatch: Configured) -> bool:
    """Return whether it may be a matmul: a look at the text is faster than parsing it."""
    return "_initializer_" not in dispatch.name and "arith.mul" in dispatch.text


def apply(
    source: Source,
    flags: Sequence[str],
    name: str,
    database: Database,
    hardware: Hardware | None = None,
    target: str = TARGET,
    *,
    has_paths: bool = False,
) -> Applied:
    """Compile the program without and with what is known."""
    if not target.startswith(GPU):
        flags = chosen_flags(source, flags, database, hardware)
    default = build(source, flags, name, has_paths=has_paths)
    if target.startswith(GPU):
        default = replace(default, dispatches=gpu_dispatches(default))
        schedules = find_gpu_schedules(default, database, gpu_hardware_of(target))
    else:
        schedules = find_schedules(default.dispatches, database, hardware)
    return substitute(default, source, flags, name, schedules, has_paths=has_paths)


def substitute(
    default: Build,
    source: Source,
    flags: Sequence[str],
    name: str,
    schedules: Mapping[str, Schedule],
    *,
    has_paths: bool = False,
) -> Applied:
    """Return the program with these schedules; where IREE cannot compile it so, without any."""
    untuned = Applied(default, None, {})
    if not schedules:
        return untuned
    by_name = {dispatch.name: dispatch for dispatch in default.dispatches}
    texts = {name: by_name[name].with_schedule(s) for name, s in schedules.items()}
    try:
        tuned = build(source, flags, name, texts, has_paths=has_paths)
    except Error as e:
        say(f"the program is compiled without tuned tiles: {e.what}")
        return untuned
    dropped = [n for n in schedules if tuned.code_of(n) == default.code_of(n)]
    if dropped:
        say(f"tuned tiles had no effect on {', '.join(dropped)}: IREE makes the same code")
    kept = {n: s for n, s in schedules.items() if n not in dropped}
    return Applied(default, tuned, kept) if kept else untuned


@dataclass(frozen=True)
class Tiles:
    """What a database has for a target of IREE's, to be put into programs."""

    database: Database
    target: str

    def build(self, source: Source, flags: Sequence[str], name: str, *, has_paths: bool) -> Modules:
        applied = apply(source, flags, name, self.database, target=self.target, has_paths=has_paths)
        tuned = None if applied.tuned is None else applied.tuned.made
        return Modules(applied.default.made, tuned, len(applied.schedules))
