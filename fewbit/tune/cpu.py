"""Autotuning of our own `cpu` target: the tiles of its kernels, and which of them use popcount.

Weights are in memory as kernels read them, and one design serves all layers, so a choice holds for
a whole program: vectors in a row of a tile, steps of a sum at once, and whether matmuls of the
fewest bits use popcount. Each is compiled, must give the same bits, and is timed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np

from fewbit.cost.hardware.host import host
from fewbit.cost.layers import made_up_inputs
from fewbit.cost.loops import LoopNest
from fewbit.errors import Error
from fewbit.program.program import Program
from fewbit.targets.target import Request
from fewbit.toolchain.isa import Isa
from fewbit.tune.database import Database, Key, Trial, versions_of
from fewbit.tune.report import Report, Row
from fewbit.tune.schedule import Schedule
from fewbit.tune.search import Tried, search
from fewbit.tune.timing import time_by_turns, timer
from fewbit.tune.tuner import Search, Tuner

TARGET = "cpu"
PACKAGES = ("fewbit", "llvmlite", "torch-mlir")
VECTORS, DEPTHS, POPCOUNT = (0, 1, 2, 3, 4), (0, 128, 192, 768), (1, 0)
"""0 is the default; popcount is used where it pays, or never."""
TRIALS = 8


class CpuTuner(Tuner):
    """The tuner of `cpu`."""

    batch_of_one = False

    def known(
        self, program: Program, request: Request, database: Path, *, named: bool
    ) -> Isa | None:
        return tuned_isa(program, Database(database, forgiving=not named))

    def search(self, search: Search) -> Report:
        return tune_cpu(search.program, search.database, seconds=search.seconds, watch=search.watch)


def key_of(program: Program) -> Key:
    """Return the key of a program: its text, in which weights are names and shapes."""
    digest = sha256(program.text().encode()).hexdigest()[:24]
    return Key(TARGET, f"program {digest}", host().identity, versions_of(*PACKAGES))


def tuned_isa(program: Program, database: Database) -> Isa | None:
    """Return this machine with what was found for the program; None where nothing was."""
    result = database.get(key_of(program))
    # A file may say anything; only what a search can find is used.
    return isa_with(result.schedule) if result and result.schedule in set(choices()) else None


def isa_with(schedule: Schedule) -> Isa:
    vectors, popcount = schedule.vector
    return replace(
        Isa.host(),
        chosen_vectors=vectors,
        chosen_depth=schedule.distribution[0],
        counts_bits=bool(popcount),
    )


def choices() -> Iterator[Schedule]:
    """Yield all but the usual one."""
    for vectors, depth, popcount in product(VECTORS, DEPTHS, POPCOUNT):
        if (vectors, depth, popcount) != (0, 0, 1):
            yield Schedule((depth,), (vectors, popcount))


class Changes:
    """A model that ranks by how much differs from the default: first one thing at a time."""

    name = "measured"

    def can(self, nest: LoopNest) -> str | None:
        return None

    def seconds(self, nest: LoopNest, schedule: Schedule) -> float:
        vectors, popcount = schedule.vector
        return float((vectors != 0) + (schedule.distribution[0] != 0) + (popcount != 1))


def tune_cpu(
    program: Program,
    database: Database,
    *,
    seconds: float = 300.0,
    trials: int = TRIALS,
    watch: Callable[[Row], None] = lambda row: None,
) -> Report:
    """Search, and keep what is faster for later compiles of the same program."""
    inputs = made_up_inputs(program, dynamic=1)
    nothing = LoopNest("program", (), (), ())
    with TemporaryDirectory(prefix="fewbit-tune-cpu-") as temporary:
        programs = Programs(program, inputs, Path(temporary))
        result = search(
            key_of(program),
            nothing,
            choices(),
            Changes(),
            programs.attempt,
            database,
            deadline=monotonic() + seconds,
            first=trials,
            around=trials // 2,
        )
    row = Row("the program", 1, result.seconds, result, None)
    watch(row)
    after = result.seconds * result.ratio
    note = "" if result.schedule else result.reason
    return Report(TARGET, (row,), result.seconds, after, result.schedule is not None, note)


class Programs:
    """A program compiled in several ways, timed by turns."""

    def __init__(self, program: Program, inputs: Sequence[Any], folder: Path) -> None:
        self._program, self._inputs, self._folder = program, inputs, folder
        self._count = 0
        self._default = self._load(Isa.host()), self._load(Isa.host())
        self._expected = self._default[0](*inputs)

    def attempt(self, wanted: Sequence[Schedule]) -> Tried:
        ready: list[tuple[Schedule, Any]] = []
        failed: list[Trial] = []
        for schedule in wanted:
            try:
                loaded = self._load(isa_with(schedule))
            except Error as e:
                failed.append(Trial(schedule, None, e.what))
                continue
            pairs = zip(self._expected, loaded(*self._inputs), strict=True)
            if all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
                ready.append((schedule, loaded))
            else:
                failed.append(Trial(schedule, None, "its results have other bits"))
        first, again = (timer(each, *self._inputs) for each in self._default)
        times = time_by_turns((first, again), [timer(each, *self._inputs) for _, each in ready])
        trials = [Trial(s, times.ratio(i)) for i, (s, _) in enumerate(ready)]
        return Tried([*trials, *failed], times.default, times.noise, times.bar)

    def _load(self, isa: Isa) -> Any:
        from fewbit.runtime.native import load_native
        from fewbit.targets.cpu.target import compile_cpu

        self._count += 1
        folder = self._folder / str(self._count)
        return load_native(compile_cpu(self._program, "model", folder, isa))
