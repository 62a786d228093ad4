"""`fewbit tune search|prepare|measure|export|calibrate|show`: autotuning, and what it found.

`fewbit tune MODEL` is `fewbit tune search MODEL`. Which targets can be tuned, and how, the targets
say. Where the machine that compiles has no GPU, `prepare` and `measure` do a search in two
steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.completion import complete_models, complete_targets
from fewbit.cli.machine import calibrate_machine, show_machine
from fewbit.cli.modes import ModeGroup, OldFlag
from fewbit.cli.options import AsJson, InputShape, OptionalRecipe, parse_shapes
from fewbit.cli.target_options import TargetCommand, target_options
from fewbit.cli.tune_report import plain_report, print_report, tell
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.program.program import Program
    from fewbit.targets.target import Target
    from fewbit.tune.database import Database
    from fewbit.tune.tuner import Tuner

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
MODELS = ("analytic", "zigzag", "measured", "random")

TuneModel = Annotated[
    str,
    typer.Argument(
        help="The model whose ops are tuned: zoo:NAME, file.py:factory, ...",
        autocompletion=complete_models,
    ),
]
TuneTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="What is tuned for.",
        show_default=False,
        autocompletion=complete_targets,
    ),
]
SearchTime = Annotated[
    str, typer.Option("--time", help="How long the search may take: 90s, 5m, 1h.")
]
Workers = Annotated[
    str, typer.Option("--workers", help="Processes that search, ray://HOST:PORT, or ray://local.")
]
TuningDb = Annotated[
    Path | None, typer.Option("--tuning-db", help="The database, if not the usual one.")
]


class TuneGroup(ModeGroup):
    """`fewbit tune`, with the flags that its subcommands once were."""

    default = "search"
    old_flags: ClassVar[Mapping[str, OldFlag]] = {
        "--calibrate": OldFlag("calibrate"),
        "--show": OldFlag("show"),
        "--prepare": OldFlag("prepare", "--output"),
        "--measure": OldFlag("measure"),
    }


class TuneCommand(TargetCommand):
    """A subcommand that takes the options of a target with a tuner."""

    verb = "tune"

    def takes(self, target: Target) -> bool:
        return target.tuner is not None


tune = typer.Typer(
    cls=TuneGroup,
    help="Autotune the tile sizes of a model's ops ('tune MODEL'), or measure this machine.",
)
tune.command("calibrate")(calibrate_machine)
tune.command("show")(show_machine)


@tune.command("search", cls=TuneCommand)
def search(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            help="The model whose ops are tuned: zoo:NAME, file.py:factory, ...",
            autocompletion=complete_models,
        ),
    ] = None,
    target: TuneTarget = None,
    recipe: OptionalRecipe = None,
    time: SearchTime = "5m",
    cost_model: Annotated[
        str,
        typer.Option("--model", help="What ranks tiles: analytic, zigzag, measured, or random."),
    ] = MODELS[0],
    workers: Workers = "1",
    passes: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            metavar="NAME",
            help="Instead of tiles, try all that a pass can do: a name, or file.py:Class. "
            "Repeatable.",
        ),
    ] = None,
    tuning_db: TuningDb = None,
    as_json: AsJson = False,
    input_shape: InputShape = None,
    export: Annotated[
        Path | None, typer.Option("--export", hidden=True, help="See 'fewbit tune export'.")
    ] = None,
) -> None:
    """Autotune the tile sizes of a model's ops, and keep what is faster for later compiles."""
    if model is None and export is None:
        raise UsageError(
            "say what to tune",
            hint="a model, 'fewbit tune zoo:lenet'; or 'fewbit tune calibrate', which measures "
            "this machine",
        )
    from fewbit.targets.registry import DEFAULT_TUNED
    from fewbit.tune.tuner import find_exporting_tuner, find_tuner

    target, given = target or DEFAULT_TUNED, target_options(context)
    tuner = find_tuner(target)
    if passes:
        _search_passes(model, passes, target, tuner, recipe, input_shape, as_json)
        return
    seconds, database = parse_time(time), _database(tuning_db)
    if cost_model not in MODELS:
        hint = f"models are {', '.join(MODELS)}"
        raise UsageError(f"there is no cost model '{cost_model}'", hint=hint)
    plain: dict[str, object] = {}
    if model is not None:
        from fewbit.targets.registry import make_options
        from fewbit.tune.program import tune_program

        make_options(target, given)
        tuner.check(target)
        report = tune_program(
            _program(model, recipe, input_shape, tuner),
            target,
            seconds=seconds,
            model=cost_model,
            workers=workers,
            database=database,
            watch=(lambda row: None) if as_json else tell,
            **given,
        )
        plain |= plain_report(report)
        if not as_json:
            print_report(report, model)
    if export is not None:
        plain["exported"] = _export(find_exporting_tuner(target), database, export, as_json)
    if as_json:
        print_json(plain)


@tune.command("prepare", cls=TuneCommand)
def prepare(
    context: typer.Context,
    model: TuneModel,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for candidates.")],
    target: TuneTarget = None,
    recipe: OptionalRecipe = None,
    time: SearchTime = "5m",
    workers: Workers = "1",
    tuning_db: TuningDb = None,
    as_json: AsJson = False,
    input_shape: InputShape = None,
) -> None:
    """Only compile candidates into a folder, for 'tune measure' elsewhere; needs no GPU."""
    from fewbit.targets.registry import DEFAULT_TUNED, make_options
    from fewbit.tune.tuner import Search, find_preparing_tuner

    target, given = target or DEFAULT_TUNED, target_options(context)
    tuner, seconds = find_preparing_tuner(target), parse_time(time)
    make_options(target, given)
    program = _program(model, recipe, input_shape, tuner)
    database = _database(tuning_db)
    asked = Search(program, target, database, seconds, workers=workers, options=given)
    prepared = tuner.prepare(asked, output, model)
    plain = {
        "folder": str(output),
        "arch": str(prepared.arch),
        "ops": len(prepared.ops),
        "candidates": sum(len(op.candidates) - 1 for op in prepared.ops),
        "failed": sum(len(op.failed) for op in prepared.ops),
        "spilled": sum(bool(each.spilled) for op in prepared.ops for each in op.candidates),
    }
    if as_json:
        print_json({"prepared": plain})
        return
    print(
        "{folder}: {candidates} candidates of {ops} ops for {arch}; {failed} could not be "
        "compiled, {spilled} spill registers".format(**plain)
    )


@tune.command("measure")
def measure(
    folder: Annotated[Path, typer.Argument(help="What 'tune prepare' wrote.")],
    tuning_db: TuningDb = None,
    as_json: AsJson = False,
) -> None:
    """Time what was prepared, and keep what is faster; needs a GPU, and no compiler."""
    from fewbit.tune.prepared import read_prepared
    from fewbit.tune.tuner import find_tuner

    tuner = find_tuner(read_prepared(folder).target)
    report, title = tuner.measure(folder, _database(tuning_db))
    print_json(plain_report(report)) if as_json else print_report(report, title)


@tune.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    target: TuneTarget = None,
    tuning_db: TuningDb = None,
    as_json: AsJson = False,
) -> None:
    """Write what the database has in the form of another tool: a tuning spec of IREE's."""
    from fewbit.targets.registry import DEFAULT_TUNED
    from fewbit.tune.tuner import find_exporting_tuner

    tuner = find_exporting_tuner(target or DEFAULT_TUNED)
    plain = _export(tuner, _database(tuning_db), file, as_json)
    if as_json:
        print_json({"exported": plain})


def _export(tuner: Tuner, database: Database, path: Path, as_json: bool) -> dict[str, object]:
    from fewbit.base.files import replacing_file

    exported = tuner.export(database)
    with replacing_file(path) as file:
        file.write(exported.text.encode())
    if not as_json:
        print(f"{path}: {exported.ops} ops; {exported.left_out} cannot be said in a tuning spec")
    return {"file": str(path), "ops": exported.ops, "left_out": exported.left_out}


def _database(path: Path | None) -> Database:
    from fewbit.tune.database import Database

    return Database(path)


def _search_passes(
    model: str | None,
    names: list[str],
    target: str,
    tuner: Tuner,
    recipe: str | None,
    input_shape: list[str] | None,
    as_json: bool,
) -> None:
    if model is None:
        raise UsageError("say which model the passes are for")
    from fewbit.cli.pass_search import find_passes, search_passes

    find_passes(names)
    program = _program(model, recipe, input_shape, tuner)
    search_passes(program, model, names, target, as_json=as_json)


def parse_time(text: str) -> float:
    """Return seconds of `90s`, `5m` or `1h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if match is None:
        raise UsageError(f"'{text}' is no time", hint="write 90s, 5m or 1h")
    return float(match[1]) * UNITS[match[2]]


def _program(
    model: str, recipe: str | None, input_shape: list[str] | None, tuner: Tuner
) -> Program:
    """Import the model, with a batch of one where it is dynamic and the tuner wants that."""
    from fewbit.base.progress import progress
    from fewbit.frontends import import_model

    shapes = parse_shapes(input_shape)
    with progress(f"Importing {model}"):
        if model.startswith("zoo:") and (shapes or tuner.batch_of_one):
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
