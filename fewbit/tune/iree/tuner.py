"""Autotuning for targets of IREE's: tile sizes of dispatches, on this processor or on a GPU."""

from __future__ import annotations

from pathlib import Path

from fewbit.base.progress import progress
from fewbit.base.target_name import TargetName
from fewbit.cost.loops.programs import Listing
from fewbit.kernels.cuda.arch import Arch
from fewbit.program.program import Program
from fewbit.targets.iree.pipeline import to_iree
from fewbit.targets.iree.tuned import KnownTiles
from fewbit.targets.target import Request
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.cuda.program import Found, GpuTuner
from fewbit.tune.database import Database
from fewbit.tune.iree import gpu_tuning
from fewbit.tune.iree.apply import Tiles, is_known
from fewbit.tune.iree.build import Build, build
from fewbit.tune.iree.loops import list_program
from fewbit.tune.report import Report
from fewbit.tune.tuner import Exported, Search, Tuner


class IreeTuner(Tuner):
    """On this machine's processor."""

    can_export = True

    def takes(self, detail: str) -> bool:
        return detail in ("", "host")

    def known(
        self, program: Program, request: Request, database: Path, *, named: bool
    ) -> KnownTiles | None:
        return find_tiles(request.target, database, named) if self.takes(request.detail) else None

    def search(self, search: Search) -> Report:
        from fewbit.tune.iree.program import tune_iree

        return tune_iree(
            search.program,
            search.database,
            search.seconds,
            search.model,
            search.workers,
            search.watch,
        )

    def list_loops(self, program: Program, dynamic: int) -> Listing:
        return list_program(program, dynamic)

    def export(self, database: Database) -> Exported:
        from fewbit.tune.iree.spec import tuning_spec

        return Exported(*tuning_spec(database))


class IreeGpuTuner(GpuTuner):
    """On a GPU of NVIDIA's."""

    def known(
        self, program: Program, request: Request, database: Path, *, named: bool
    ) -> KnownTiles | None:
        return find_tiles(request.target, database, named)

    def spaces(self, search: Search, arch: Arch) -> Found:
        with progress("Compiling as it is"):
            built = build_for(search.program, arch)
        return gpu_tuning.spaces_of(built, arch)


def find_tiles(target: str, path: Path, named: bool) -> KnownTiles | None:
    """Return what a database has for a target, if it has anything."""
    database = Database(path, forgiving=not named)
    return Tiles(database, target) if is_known(database, target=target) else None


def build_for(program: Program, arch: Arch) -> Build:
    """Return a program through IREE for a GPU as it is, with its dispatches."""
    source, _ = to_iree(program)
    target = TargetName(gpu_tuning.TARGET, f"sm_{arch.compute}")
    return build(source, compile_flags(str(target)), "model")
