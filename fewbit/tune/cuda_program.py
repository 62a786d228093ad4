"""`fewbit tune MODEL -t iree-cuda` and `-t cuda`: a program's ops on a GPU, here or elsewhere.

Where there is a GPU, rounds of compiling and measuring follow each other, and the program is timed
without and with what was found. Elsewhere candidates are compiled into a folder, which a machine
with a GPU measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter
from typing import Any

from fewbit.base.progress import progress
from fewbit.errors import Error, MissingToolError, UsageError
from fewbit.kernels.cuda.arch import HOPPER, Arch, find_arch
from fewbit.kernels.cuda.driver import device
from fewbit.program.program import Program
from fewbit.tune.cuda_measure import measure
from fewbit.tune.cuda_search import Space, prepare, record, search
from fewbit.tune.database import Database
from fewbit.tune.iree.build import Build
from fewbit.tune.iree.tuning import Row
from fewbit.tune.prepared import Prepared, read_prepared
from fewbit.tune.program import Report, judged
from fewbit.tune.timing import Times, time_by_turns

SUM = "the sum of the ops; the program itself was not timed"

Found = tuple[list[Space], dict[str, tuple[int, str]]]


def need_gpu() -> Arch:
    """The generation of the GPU that is here; a clear error where there is none."""
    try:
        return device().arch
    except Error as e:
        raise MissingToolError(
            f"a search times its candidates on a GPU, and there is none: {e.what}",
            hint="--prepare DIR compiles them here; then 'fewbit tune --measure DIR' on a machine "
            "with a GPU times them",
        ) from e


def arch_for(target: str, here: Callable[[], Arch] = need_gpu) -> Arch:
    """The generation behind the colon of a target, or that of the GPU that is here."""
    name = target.partition(":")[2]
    return find_arch(name) if name else here()


def spaces_for(program: Program, target: str, arch: Arch, options: Mapping[str, Any]) -> Found:
    given = {name: value for name, value in options.items() if value is not None}
    if target.partition(":")[0] == "cuda":
        from fewbit.tune.cuda_layers import spaces_of

        return spaces_of(program, arch, **given)
    if given:
        raise UsageError(f"{', '.join(given)} is for -t cuda")
    from fewbit.tune.iree.gpu_tuning import spaces_of as dispatches_of

    with progress("Compiling as it is"):
        return dispatches_of(build_for(program, arch), arch)


def prepare_program(
    program: Program,
    target: str,
    folder: Path,
    database: Database,
    *,
    title: str,
    seconds: float = 300.0,
    workers: str = "1",
    **options: Any,
) -> Prepared:
    """Compile a round of candidates into a folder; needs no GPU."""
    end = monotonic() + seconds
    arch = arch_for(target, lambda: HOPPER)
    spaces, left = spaces_for(program, target, arch, options)
    return prepare(
        folder,
        spaces,
        database,
        target=f"{target.partition(':')[0]}:sm_{arch.compute}",
        arch=f"sm_{arch.compute}",
        title=title,
        left=left,
        workers=_count(workers),
        deadline=end,
    )


def measure_folder(folder: Path, database: Database) -> tuple[Report, str]:
    """Time what was prepared, and keep what is faster; also the title of what it is."""
    prepared = read_prepared(folder)
    arch = need_gpu()
    if prepared.arch != f"sm_{arch.compute}":
        raise UsageError(
            f"the candidates are for {prepared.arch}, and this GPU is sm_{arch.compute}",
            hint=f"prepare them for it: -t {prepared.target.partition(':')[0]}:sm_{arch.compute}",
        )
    measure(folder)
    return report_of(prepared.target, record(folder, database)), prepared.title


def report_of(target: str, rows: Sequence[Row]) -> Report:
    """Without the program itself: the sum of its ops."""
    before = sum(row.calls * (row.seconds or 0.0) for row in rows)
    after = sum(
        row.calls * (row.seconds or 0.0) * (row.result.ratio if row.result else 1.0) for row in rows
    )
    kept = any(row.result is not None and row.result.schedule is not None for row in rows)
    return Report(target, tuple(rows), before, after, kept, SUM)


def tune_gpu(
    program: Program,
    target: str,
    database: Database,
    *,
    seconds: float,
    workers: str = "1",
    watch: Callable[[Row], None] = lambda row: None,
    **options: Any,
) -> Report:
    """Search on the GPU that is here, and keep what makes the program faster."""
    here, arch = need_gpu(), arch_for(target)
    if here != arch:
        raise UsageError(
            f"this GPU is sm_{here.compute}, and {target} is for another",
            hint="--prepare DIR compiles candidates that another machine measures",
        )
    name = target.partition(":")[0]
    full = f"{name}:sm_{arch.compute}"
    spaces, left = spaces_for(program, full, arch, options)
    rows = search(
        spaces,
        database,
        target=name,
        arch=f"sm_{arch.compute}",
        seconds=seconds,
        workers=_count(workers),
        watch=watch,
    )
    rows += [Row(each, calls, None, None, why) for each, (calls, why) in left.items()]
    if not any(row.result is not None and row.result.schedule is not None for row in rows):
        return report_of(full, rows)
    times, gap = _time_programs(program, full, database, options)
    return judged(full, rows, database, times, gap)


def _time_programs(
    program: Program, target: str, database: Database, options: Mapping[str, Any]
) -> tuple[Times, float]:
    """The program twice without what was found and once with it, and how results differ."""
    from fewbit.cost.layers import made_up_inputs
    from fewbit.targets.compile import compile
    from fewbit.tune.iree.apply import largest_difference

    given = {name: value for name, value in options.items() if value is not None}
    inputs = made_up_inputs(program, dynamic=1)
    with TemporaryDirectory(prefix="fewbit-tuned-") as folder:
        loaded = [
            compile(program, target, Path(folder) / str(i), tuning_db=which, **given).runner
            for i, which in enumerate(("none", "none", str(database.path)))
        ]
    calls = [_call(each, inputs) for each in loaded]
    outputs = [call() for call in calls]
    gap = max(largest_difference(outputs[0], other) for other in outputs[1:])
    first, again, tuned = map(_timed, calls)
    return time_by_turns((first, again), [tuned]), gap


def _call(runner: Any, inputs: Sequence[Any]) -> Callable[[], Any]:
    """A call whose inputs are on the GPU already."""
    if hasattr(runner, "prepare"):
        return runner.prepare(*inputs)
    runner.place(*inputs)

    def call() -> Any:
        runner.run()
        return runner.outputs()

    return call


def _timed(call: Callable[[], Any]) -> Callable[[int], float]:
    def run(times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            call()
        return (perf_counter() - start) / times

    return run


def build_for(program: Program, arch: Arch) -> Build:
    """A program through IREE as it is, with its dispatches."""
    from fewbit.targets.iree.pipeline import to_iree
    from fewbit.toolchain.iree_devices import compile_flags
    from fewbit.tune.iree.build import build

    source, _ = to_iree(program)
    return build(source, compile_flags(f"iree-cuda:sm_{arch.compute}"), "model")


def _count(workers: str) -> int:
    if workers.isdecimal() and int(workers):
        return int(workers)
    raise UsageError(
        f"'{workers}' are no workers for a GPU", hint="a number of compilers that run at once"
    )
