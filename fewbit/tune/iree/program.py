"""Autotuning for `iree-cpu`: dispatches of a program, in IREE's tiles of matrices and in rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from fewbit.base.progress import progress
from fewbit.cost.layers import made_up_inputs
from fewbit.program.program import Program
from fewbit.runtime.iree import load_iree
from fewbit.targets.agreement import QUANTIZED_TOLERANCE, largest_difference
from fewbit.targets.iree.compiler import IreeOutput
from fewbit.targets.iree.parameters import Parameters
from fewbit.targets.iree.pipeline import to_iree
from fewbit.targets.iree.target import Iree
from fewbit.targets.target import Request
from fewbit.toolchain.iree_devices import compile_flags
from fewbit.tune.database import Database
from fewbit.tune.iree.apply import Applied, find_schedules, substitute
from fewbit.tune.iree.build import build
from fewbit.tune.iree.layout import in_rows, is_faster, keep_layout
from fewbit.tune.iree.tuning import TARGET, tune_dispatches
from fewbit.tune.report import Report, Row, judge
from fewbit.tune.timing import Times, time_by_turns, timer

TILED_SHARE = 0.5
"""The part of the time for matrices in IREE's tiles; the remainder is for rows."""


def tune_iree(
    program: Program,
    database: Database,
    seconds: float,
    model: str,
    workers: str,
    watch: Callable[[Row], None],
) -> Report:
    """Autotune the tile sizes of all dispatches, and the layout of matrices."""
    source, parameters = to_iree(program)
    flags, end = compile_flags(TARGET), monotonic() + seconds

    def search_with(flags: Sequence[str], seconds: float) -> tuple[list[Row], Applied]:
        with progress("Compiling as it is"):
            built = build(source, flags, "model")
        rows = tune_dispatches(
            built, database, seconds=seconds, model=model, workers=workers, watch=watch
        )
        with progress("Compiling with what was found"):
            schedules = find_schedules(built.dispatches, database)
            return rows, substitute(built, source, flags, "model", schedules)

    rows, tiled = search_with(flags, TILED_SHARE * seconds)
    more, plain = search_with(in_rows(flags), max(0.0, end - monotonic()))

    def time_beside_default(built: IreeOutput) -> tuple[Times, float]:
        return _time_modules(program, parameters, [tiled.default.made, built])

    times, gap = time_beside_default((plain.tuned or plain.default).made)
    own = time_beside_default(tiled.tuned.made) if tiled.tuned else None
    faster = gap <= QUANTIZED_TOLERANCE and is_faster(times, own[0] if own else None)
    keep_layout(source, database, times, faster=faster)
    if faster:
        note = "matrices stay in rows, which is faster than IREE's tiles of them"
        after = times.default * times.ratio(0)
        return Report(TARGET, tuple(more), times.default, after, True, note)
    if own is None:
        note = "nothing beats IREE's tiles"
        return Report(TARGET, tuple(rows), times.default, times.default, False, note)
    return judge(TARGET, rows, database, *own)


def _time_modules(
    program: Program, parameters: Parameters, modules: Sequence[IreeOutput]
) -> tuple[Times, float]:
    """Return the first module twice and the others, by turns, and how far their results differ."""
    request = Request(TARGET)
    inputs = made_up_inputs(program, dynamic=1)
    with TemporaryDirectory(prefix="fewbit-tuned-") as folder:
        loaded = [
            load_iree(Iree().write_made(program, parameters, data, request, Path(folder) / str(i)))
            for i, data in enumerate([modules[0], *modules])
        ]
    calls = [module.prepare(*inputs) for module in loaded]
    outputs = [call() for call in calls]
    gap = max((largest_difference(outputs[0], o) for o in outputs[1:]), default=0.0)

    first, again, *others = (timer(call.run) for call in calls)
    return time_by_turns((first, again), others), gap
