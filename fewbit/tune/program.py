"""`fewbit tune MODEL`: all ops of a program, for a target, and the program before and after.

What was found counts only if the whole program is faster with it; what a dispatch gains alone it
may lose among others. Otherwise the default is kept for all its ops, and the database told so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

from fewbit.base.progress import progress
from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.tune.database import Database
from fewbit.tune.iree.tuning import Row
from fewbit.tune.timing import Times, time_by_turns, timed

if TYPE_CHECKING:
    from fewbit.targets.iree.compiler import Made
    from fewbit.targets.iree.parameters import Parameters

TARGETS = ("iree-cpu", "cpu", "iree-cuda", "cuda")
LEAST_NOTICED = 0.02
"""By how much a program may seem slower and still count as fast, however noisy times are."""
TILED_SHARE = 0.5
"""Of the time, for dispatches as IREE makes them of matrices in tiles; the rest is for rows."""


@dataclass(frozen=True)
class Report:
    """What a search found."""

    target: str
    rows: tuple[Row, ...]
    before: float
    """Seconds of a call of the whole program, one thread."""
    after: float
    kept: bool
    """Whether the program is compiled with what was found from now on."""
    note: str = ""


def tune_program(
    program: Program,
    target: str = "iree-cpu",
    *,
    seconds: float = 300.0,
    model: str = "analytic",
    workers: str = "1",
    database: Database | None = None,
    watch: Callable[[Row], None] = lambda row: None,
    **options: Any,
) -> Report:
    """Search for the tiles of a program's ops, and keep what is faster.

    `options` are those of the target: `precision` and `sizes` of `cuda`.
    """
    database = database or Database()
    if target == "cpu":
        from fewbit.tune.cpu import tune_cpu

        return tune_cpu(program, database, seconds=seconds, watch=watch)
    if target.partition(":")[0] in ("iree-cuda", "cuda"):
        from fewbit.tune.cuda_program import tune_gpu

        how = {"seconds": seconds, "workers": workers, "watch": watch}
        return tune_gpu(program, target, database, **how, **options)
    if target not in ("iree-cpu", "iree-cpu:host"):
        raise UsageError(
            f"tiles for {target} cannot be searched for",
            hint=f"targets that can be measured here are {', '.join(TARGETS)}",
        )
    return _tune_iree(program, database, seconds, model, workers, watch)


def _tune_iree(
    program: Program,
    database: Database,
    seconds: float,
    model: str,
    workers: str,
    watch: Callable[[Row], None],
) -> Report:
    from fewbit.targets.iree.pipeline import to_iree
    from fewbit.toolchain.iree_devices import compile_flags
    from fewbit.tune.iree.apply import QUANTIZED_TOLERANCE, Applied, find_schedules, substitute
    from fewbit.tune.iree.build import build
    from fewbit.tune.iree.layout import in_rows, is_faster, keep_layout
    from fewbit.tune.iree.tuning import tune_dispatches

    source, parameters = to_iree(program)
    flags, end = compile_flags("iree-cpu"), monotonic() + seconds

    def search_with(flags: Sequence[str], seconds: float) -> tuple[list[Row], Applied]:
        with progress("Compiling as it is"):
            made = build(source, flags, "model")
        rows = tune_dispatches(
            made, database, seconds=seconds, model=model, workers=workers, watch=watch
        )
        with progress("Compiling with what was found"):
            schedules = find_schedules(made.dispatches, database)
            return rows, substitute(made, source, flags, "model", schedules)

    rows, tiled = search_with(flags, TILED_SHARE * seconds)
    more, plain = search_with(in_rows(flags), max(0.0, end - monotonic()))

    def time_beside_default(made: Made) -> tuple[Times, float]:
        return _time_modules(program, parameters, [tiled.default.made, made])

    times, gap = time_beside_default((plain.tuned or plain.default).made)
    own = time_beside_default(tiled.tuned.made) if tiled.tuned else None
    faster = gap <= QUANTIZED_TOLERANCE and is_faster(times, own[0] if own else None)
    keep_layout(source, database, times, faster=faster)
    if faster:
        note = "matrices stay in rows, which is faster than IREE's tiles of them"
        after = times.default * times.ratio(0)
        return Report("iree-cpu", tuple(more), times.default, after, True, note)
    if own is None:
        note = "nothing beats IREE's tiles"
        return Report("iree-cpu", tuple(rows), times.default, times.default, False, note)
    return judged("iree-cpu", rows, database, *own)


def judged(
    target: str, rows: Sequence[Row], database: Database, times: Times, gap: float
) -> Report:
    """Of a program without and with what was found: that is kept if it is not slower."""
    from fewbit.tune.iree.apply import QUANTIZED_TOLERANCE

    ratio = times.ratio(0)
    slower = ratio > 1 + min(times.noise, LEAST_NOTICED)
    if not slower and gap <= QUANTIZED_TOLERANCE:
        return Report(target, tuple(rows), times.default, times.default * ratio, True)
    why = "slower" if slower else f"different by {gap:.2g}"
    for row in rows:
        if row.result is not None and row.result.schedule is not None:
            reason = f"the whole program was {why} with it"
            database.put(replace(row.result, schedule=None, ratio=1.0, reason=reason))
    note = f"the program would be {why}: all is kept as it was"
    return Report(target, tuple(rows), times.default, times.default, False, note)


def _time_modules(
    program: Program, parameters: Parameters, modules: Sequence[Made]
) -> tuple[Times, float]:
    """The first module twice and the others, by turns, and how far their results differ."""
    from fewbit.cost.layers import made_up_inputs
    from fewbit.runtime.iree import load_iree
    from fewbit.targets.iree.target import Iree
    from fewbit.targets.target import Request
    from fewbit.tune.iree.apply import largest_difference

    request = Request("iree-cpu")
    inputs = made_up_inputs(program, dynamic=1)
    with TemporaryDirectory(prefix="fewbit-tuned-") as folder:
        loaded = [
            load_iree(Iree().write_made(program, parameters, made, request, Path(folder) / str(i)))
            for i, made in enumerate([modules[0], *modules])
        ]
    calls = [module.prepare(*inputs) for module in loaded]
    outputs = [call() for call in calls]
    gap = max((largest_difference(outputs[0], o) for o in outputs[1:]), default=0.0)

    first, again, *others = (timed(call.run) for call in calls)
    return time_by_turns((first, again), others), gap
