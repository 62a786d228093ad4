"""Autotuning for the target `cuda`: the kernels of layers, and their settings."""

from __future__ import annotations

from pathlib import Path

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.table import Table
from fewbit.program.program import Program
from fewbit.targets.cuda.target import CudaOptions, arch_of
from fewbit.targets.target import Request
from fewbit.tune.cuda.layers import known_settings, spaces_of
from fewbit.tune.cuda.program import Found, GpuTuner
from fewbit.tune.database import Database
from fewbit.tune.tuner import Search


class CudaTuner(GpuTuner):
    """The tuner of `cuda`."""

    def known(self, program: Program, request: Request, database: Path, *, named: bool) -> Table:
        return known_settings(Database(database, forgiving=not named), arch_of(request))

    def spaces(self, search: Search, arch: Arch) -> Found:
        given = CudaOptions.check(search.options, search.target)
        sizes = given.sizes or None
        return spaces_of(search.program, arch, precision=given.precision, sizes=sizes)
