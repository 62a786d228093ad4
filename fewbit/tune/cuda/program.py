"""Autotuning of ops on a GPU, here or elsewhere: what the tuners of `cuda` and `iree-cuda` share.

Where there is a GPU, rounds of compiling and measuring follow each other, and the program is timed
without and with what was found. Elsewhere candidates are compiled into a folder, which a machine
with a GPU measures.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter
from typing import Any

from fewbit.base.target_name import TargetName
from fewbit.errors import Error, MissingToolError, UsageError
from fewbit.kernels.cuda.arch import HOPPER, Arch, find_arch
from fewbit.kernels.cuda.driver import device
from fewbit.program.program import Program
from fewbit.targets.agreement import largest_difference
from fewbit.tune.cuda.measure import measure
from fewbit.tune.cuda.search import Space, prepare, record, search
from fewbit.tune.database import Database
from fewbit.tune.prepared import Prepared, read_prepared
from fewbit.tune.report import Report, Row, judge
from fewbit.tune.timing import Times, time_by_turns
from fewbit.tune.tuner import Search, Tuner

SUM = "the sum of the ops; the program itself was not timed"

Found = tuple[list[Space], dict[str, tuple[int, str]]]


class GpuTuner(Tuner):
    """What tunes the kernels of a program, one by one, on a GPU of NVIDIA's."""

    timed = ""
    can_prepare = True

    @abstractmethod
    def spaces(self, search: Search, arch: Arch) -> Found:
        """Return what can be searched for, and what is left, with the reason."""

    def takes(self, detail: str) -> bool:
        return True

    def check(self, target: str) -> None:
        here, arch = need_gpu(), arch_for(target)
        if here != arch:
            raise UsageError(
                f"this GPU is sm_{here.compute}, and {target} is for another",
                hint="'fewbit tune prepare' compiles candidates that another machine measures",
            )

    def search(self, search: Search) -> Report:
        """Search on the GPU that is here, and keep what makes the program faster."""
        arch = arch_for(search.target)
        full = TargetName(TargetName.parse(search.target).kind, f"sm_{arch.compute}")
        spaces, left = self.spaces(search, arch)
        rows = _search(search, spaces, full)
        rows += [Row(each, calls, None, None, why) for each, (calls, why) in left.items()]
        if not any(row.result is not None and row.result.schedule is not None for row in rows):
            return report_of(str(full), rows)
        times, gap = _time_programs(search.program, str(full), search.database, search.options)
        return judge(str(full), rows, search.database, times, gap)

    def prepare(self, search: Search, folder: Path, title: str) -> Prepared:
        """Compile a round of candidates into a folder; needs no GPU."""
        end = monotonic() + search.seconds
        arch = arch_for(search.target, lambda: HOPPER)
        spaces, left = self.spaces(search, arch)
        return prepare(
            folder,
            spaces,
            search.database,
            target=str(TargetName(TargetName.parse(search.target).kind, f"sm_{arch.compute}")),
            arch=f"sm_{arch.compute}",
            title=title,
            left=left,
            workers=_count(search.workers),
            deadline=end,
        )

    def measure(self, folder: Path, database: Database) -> tuple[Report, str]:
        prepared = read_prepared(folder)
        arch = need_gpu()
        if prepared.arch != f"sm_{arch.compute}":
            kind = TargetName.parse(prepared.target).kind
            raise UsageError(
                f"the candidates are for {prepared.arch}, and this GPU is sm_{arch.compute}",
                hint=f"prepare them for it: -t {kind}:sm_{arch.compute}",
            )
        measure(folder)
        return report_of(prepared.target, record(folder, database)), prepared.title


def need_gpu() -> Arch:
    """Return the generation of this machine's GPU; raise an error where there is none."""
    try:
        return device().arch
    except Error as e:
        raise MissingToolError(
            f"a search times its candidates on a GPU, and there is none: {e.what}",
            hint="'fewbit tune prepare MODEL -o DIR' compiles them here; then "
            "'fewbit tune measure DIR' on a machine with a GPU times them",
        ) from e


def arch_for(target: str, here: Callable[[], Arch] = need_gpu) -> Arch:
    """Return the generation behind the colon of a target, or that of this machine's GPU."""
    name = TargetName.parse(target).detail
    return find_arch(name) if name else here()


def report_of(target: str, rows: Sequence[Row]) -> Report:
    """Report ops without the program as a whole: its time is their sum."""
    before = sum(row.calls * (row.seconds or 0.0) for row in rows)
    after = sum(
        row.calls * (row.seconds or 0.0) * (row.result.ratio if row.result else 1.0) for row in rows
    )
    kept = any(row.result is not None and row.result.schedule is not None for row in rows)
    return Report(target, tuple(rows), before, after, kept, SUM)


def _search(asked: Search, spaces: Sequence[Space], full: TargetName) -> list[Row]:
    return search(
        spaces,
        asked.database,
        target=full.kind,
        arch=full.detail,
        seconds=asked.seconds,
        workers=_count(asked.workers),
        watch=asked.watch,
    )


def _time_programs(
    program: Program, target: str, database: Database, options: Mapping[str, Any]
) -> tuple[Times, float]:
    """Time the program twice without what was found and once with it; compare results."""
    from fewbit.cost.layers import made_up_inputs
    from fewbit.targets.compile import compile

    inputs = made_up_inputs(program, dynamic=1)
    with TemporaryDirectory(prefix="fewbit-tuned-") as folder:
        loaded = [
            compile(program, target, Path(folder) / str(i), tuning_db=which, **options).runner
            for i, which in enumerate(("none", "none", str(database.path)))
        ]
    calls = [_call(each, inputs) for each in loaded]
    outputs = [call() for call in calls]
    gap = max(largest_difference(outputs[0], other) for other in outputs[1:])
    first, again, tuned = map(_timer, calls)
    return time_by_turns((first, again), [tuned]), gap


def _call(runner: Any, inputs: Sequence[Any]) -> Callable[[], Any]:
    """Return a call whose inputs are on the GPU already."""
    if hasattr(runner, "prepare"):
        return runner.prepare(*inputs)
    runner.place(*inputs)

    def call() -> Any:
        runner.run()
        return runner.outputs()

    return call


def _timer(call: Callable[[], Any]) -> Callable[[int], float]:
    def run(times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            call()
        return (perf_counter() - start) / times

    return run


def _count(workers: str) -> int:
    if workers.isdecimal() and int(workers):
        return int(workers)
    raise UsageError(
        f"'{workers}' are no workers for a GPU", hint="a number of compilers that run at once"
    )
