"""`fewbit tune MODEL -t TARGET` searches for tiles; `--pass` tries what a pass can do.

`--calibrate` measures this machine.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.options import InputShape, OptionalRecipe, parse_shapes
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.cost.cpu import Calibration
    from fewbit.program.program import Program
    from fewbit.tune.database import Database
    from fewbit.tune.iree.tuning import Row
    from fewbit.tune.program import Report

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
TARGETS = ("iree-cpu", "cpu", "iree-cuda", "cuda")
GPUS = ("iree-cuda", "cuda")
MODELS = ("analytic", "zigzag", "measured", "random")


def tune(
    model: Annotated[
        str | None,
        typer.Argument(help="The model whose ops are searched: zoo:NAME, file.py:factory, ..."),
    ] = None,
    target: Annotated[
        str,
        typer.Option("--target", "-t", help="iree-cpu, cpu, iree-cuda[:sm_90] or cuda[:sm_90]."),
    ] = "iree-cpu",
    recipe: OptionalRecipe = None,
    time: Annotated[
        str, typer.Option("--time", help="How long the search may take: 90s, 5m, 1h.")
    ] = "5m",
    cost_model: Annotated[
        str,
        typer.Option("--model", help="What ranks tiles: analytic, zigzag, measured, or random."),
    ] = "analytic",
    workers: Annotated[
        str,
        typer.Option("--workers", help="Processes that search, ray://HOST:PORT, or ray://local."),
    ] = "1",
    passes: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            metavar="NAME",
            help="Instead of tiles, try all that a pass can do: a name, or file.py:Class. "
            "Repeatable.",
        ),
    ] = None,
    tuning_db: Annotated[
        Path | None,
        typer.Option("--tuning-db", help="The database, if not the usual one."),
    ] = None,
    prepare: Annotated[
        Path | None,
        typer.Option(
            "--prepare",
            metavar="DIR",
            help="iree-cuda, cuda: only compile candidates into a folder; needs no GPU.",
        ),
    ] = None,
    measure: Annotated[
        Path | None,
        typer.Option(
            "--measure", metavar="DIR", help="Time what was prepared, and keep it; needs a GPU."
        ),
    ] = None,
    precision: Annotated[
        str | None, typer.Option("--precision", help="cuda: f32, tf32 or f16.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write what the database has as a tuning spec of IREE's."),
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Time kernels on this machine, about a minute, and keep it."
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --calibrate: fewer kernels, less exact.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Show the calibration that is kept.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    input_shape: InputShape = None,
) -> None:
    """Search for the tiles of a model's ops, or measure what kernels take on this machine."""
    if quick and not calibrate:
        raise UsageError("--quick is for --calibrate", hint="fewbit tune --calibrate --quick")
    if calibrate or show:
        _calibration(calibrate, quick, as_json)
        return
    if measure is not None:
        _measure(measure, tuning_db, as_json)
        return
    if model is None and export is None:
        raise UsageError(
            "say what to tune",
            hint="a model, 'fewbit tune zoo:lenet'; or --calibrate, which measures this machine",
        )
    check_target(target)
    if passes:
        _search_passes(model, passes, target, recipe, input_shape, as_json)
        return
    seconds = parse_time(time)
    if cost_model not in MODELS:
        hint = f"models are {', '.join(MODELS)}"
        raise UsageError(f"there is no cost model '{cost_model}'", hint=hint)
    from fewbit.tune.database import Database

    database = Database(tuning_db)
    found: dict[str, object] = {}
    if model is not None and prepare is not None:
        found["prepared"] = made = _prepare(
            model, recipe, input_shape, target, prepare, database, seconds, workers, precision
        )
        if not as_json:
            print(
                "{folder}: {candidates} candidates of {ops} ops for {arch}; {failed} could not be "
                "compiled, {spilled} spill registers".format(**made)
            )
    elif model is not None:
        from fewbit.tune.program import tune_program

        options = {} if precision is None else {"precision": precision}
        if options and target.partition(":")[0] != "cuda":
            raise UsageError("--precision is for -t cuda")
        if target.partition(":")[0] in GPUS:
            from fewbit.tune.cuda_program import need_gpu

            need_gpu()

        program = _program(model, recipe, input_shape, target)
        report = tune_program(
            program,
            target,
            seconds=seconds,
            model=cost_model,
            workers=workers,
            database=database,
            watch=(lambda row: None) if as_json else _tell,
            **options,
        )
        found |= plain_report(report)
        if not as_json:
            print_report(report, model)
    if export is not None:
        from fewbit.base.files import replacing_file
        from fewbit.tune.iree.spec import tuning_spec

        text, count, left = tuning_spec(database)
        with replacing_file(export) as file:
            file.write(text.encode())
        found["exported"] = {"file": str(export), "ops": count, "left_out": left}
        if not as_json:
            print(f"{export}: {count} ops; {left} cannot be said in a tuning spec")
    if as_json:
        print_json(found)


def _prepare(
    model: str,
    recipe: str | None,
    input_shape: list[str] | None,
    target: str,
    folder: Path,
    database: Database,
    seconds: float,
    workers: str,
    precision: str | None,
) -> dict[str, object]:
    """Compiles candidates into the folder, and counts them."""
    if target.partition(":")[0] not in GPUS:
        raise UsageError("--prepare is for GPUs", hint=f"-t {' or -t '.join(GPUS)}")
    from fewbit.tune.cuda_program import prepare_program

    program = _program(model, recipe, input_shape, target)
    made = prepare_program(
        program,
        target,
        folder,
        database,
        title=model,
        seconds=seconds,
        workers=workers,
        precision=precision,
    )
    return {
        "folder": str(folder),
        "arch": str(made.arch),
        "ops": len(made.ops),
        "candidates": sum(len(op.candidates) - 1 for op in made.ops),
        "failed": sum(len(op.failed) for op in made.ops),
        "spilled": sum(bool(each.spilled) for op in made.ops for each in op.candidates),
    }


def _measure(folder: Path, tuning_db: Path | None, as_json: bool) -> None:
    from fewbit.tune.cuda_program import measure_folder
    from fewbit.tune.database import Database

    report, title = measure_folder(folder, Database(tuning_db))
    print_json(plain_report(report)) if as_json else print_report(report, title)


def _search_passes(
    model: str | None,
    names: list[str],
    target: str,
    recipe: str | None,
    input_shape: list[str] | None,
    as_json: bool,
) -> None:
    if model is None:
        raise UsageError("say which model the passes are for")
    from fewbit.cli.pass_search import find_passes, search_passes

    find_passes(names)
    program = _program(model, recipe, input_shape, target)
    search_passes(program, model, names, target, as_json=as_json)


def check_target(target: str) -> None:
    name, _, detail = target.partition(":")
    if name not in TARGETS or (detail and name not in GPUS):
        raise UsageError(
            f"tiles for {target} cannot be searched for",
            hint=f"targets that can be searched are {', '.join(TARGETS)}",
        )


def parse_time(text: str) -> float:
    """Seconds of `90s`, `5m` or `1h`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None:
        raise UsageError(f"'{text}' is no time", hint="write 90s, 5m or 1h")
    return float(found[1]) * UNITS[found[2]]


def _program(model: str, recipe: str | None, input_shape: list[str] | None, target: str) -> Program:
    """For IREE with a batch of one where it is free: tiles found so hold for any."""
    from fewbit.base.progress import progress
    from fewbit.frontends import import_model

    shapes = parse_shapes(input_shape)
    with progress(f"Importing {model}"):
        if model.startswith("zoo:") and (shapes or target != "cpu"):
            from fewbit.models.registry import create, find_entry

            name = model.removeprefix("zoo:")
            inputs = () if shapes else find_entry(name).example_inputs(1)
            program = import_model(create(name), inputs, input_shapes=shapes)
        else:
            program = import_model(model, input_shapes=shapes)
        if recipe is None:
            return program
        from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
        from fewbit.quant.quantize import quantize

        return quantize(fold_batch_norm(program), recipe)


def _tell(row: Row) -> None:
    from fewbit.base.progress import say

    found = row.result
    if found is not None:
        gain = f"{1 / found.ratio:.2f}x, {found.schedule}" if found.schedule else found.reason
        say(f"{row.name}: {gain} ({found.trials} trials)")


def plain_report(report: Report) -> dict[str, object]:
    return {
        "target": report.target,
        "before_seconds": report.before,
        "after_seconds": report.after,
        "kept": report.kept,
        "note": report.note,
        "ops": [
            {
                "name": row.name,
                "calls": row.calls,
                "macs": row.macs,
                "seconds": row.seconds,
                "ratio": None if row.result is None else row.result.ratio,
                "noise": None if row.result is None else row.result.noise,
                "trials": None if row.result is None else row.result.trials,
                "tiles": None
                if row.result is None or row.result.schedule is None
                else row.result.schedule.as_json(),
                "reason": row.reason or (row.result.reason if row.result else ""),
            }
            for row in report.rows
        ],
    }


def print_report(report: Report, title: str) -> None:
    """A table of ops before and after, and the model."""
    from rich.table import Table

    from fewbit.cli.inspect import wide_console

    threads = "" if report.target.partition(":")[0] in GPUS else ", one thread"
    table = Table(title=f"{title}, {report.target}{threads}", title_justify="left")
    table.add_column("op", overflow="fold")
    for name in ("calls", "before", "after", "gain", "noise"):
        table.add_column(name, justify="right")
    table.add_column("tiles, or why not", overflow="fold")
    left = [row for row in report.rows if row.reason is not None]
    for row in report.rows:
        if row.reason is not None or row.result is None:
            continue
        found, before = row.result, row.seconds or row.result.seconds
        table.add_row(
            row.name,
            str(row.calls),
            _time(before),
            _time(before * found.ratio),
            f"{1 / found.ratio:.2f}x",
            f"{found.noise:.1%}",
            str(found.schedule) if found.schedule else found.reason,
        )
    for row in left:
        table.add_row(row.name, str(row.calls), "", "", "", "", row.reason or "")
    table.add_section()
    gain = report.before / report.after if report.after else 1.0
    table.add_row(
        "the model", "", _time(report.before), _time(report.after), f"{gain:.2f}x", "", report.note
    )
    wide_console().print(table)


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"


def _calibration(calibrate: bool, quick: bool, as_json: bool) -> None:
    from fewbit.cost.cpu.store import load_calibration, save_calibration, to_json

    if calibrate:
        from fewbit.cost.cpu.calibrate import FULL, QUICK
        from fewbit.cost.cpu.calibrate import calibrate as measure

        found = measure(effort=QUICK if quick else FULL)
        path = save_calibration(found)
        if not as_json:
            print(f"kept in {path}")
    else:
        found = load_calibration()
    print_json(to_json(found)) if as_json else print(describe(found))


def describe(calibration: Calibration) -> str:
    """What is known of a machine, in a few lines."""
    bounds = calibration.bounds()
    state = (
        f"calibrated on {calibration.date}"
        if calibration.is_calibrated
        else "not calibrated: estimates; 'fewbit tune --calibrate' measures this machine"
    )
    sizes = [16 << 10, 512 << 10, 4 << 20, 64 << 20]
    rates = ", ".join(f"{_size(size)}: {bounds.bandwidth(size) / 1e9:.0f} GB/s" for size in sizes)
    lines = [
        calibration.processor or calibration.isa.cpu,
        state,
        f"one thread at best: {bounds.macs['f32'] / 1e9:.0f} GMAC/s of floats, "
        f"{bounds.macs['i8'] / 1e9:.0f} of bytes",
        f"reads, by the memory in use: {rates}",
    ]
    if calibration.accuracy is not None:
        lines.append(str(calibration.accuracy))
    return "\n".join(lines)


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"
