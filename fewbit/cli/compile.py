"""`fewbit compile MODEL -t TARGET -o DIR`: an artifact, or the program after one of the stages.

Stages: `graph`, the imported model with its module hierarchy; then those of the target, from
`mico`, quantized by the recipe, to its last. `--stop-after` prints the text of one of them,
`--dump-ir` writes that of all, and `--insert-pass` runs a pass after one. Options that targets
declare are options of the command, in a panel of the help for each; others refuse them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.base.target_name import TargetName
from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.options import (
    Cache,
    CalibrateData,
    Constants,
    Context,
    InputShape,
    KeepBatchNorm,
    LogitsKind,
    LogitsOption,
    ModelName,
    OptionalMethod,
    OptionalRecipe,
    Place,
    Samples,
    Sequences,
    Strict,
    TargetText,
    parse_constants,
    parse_shapes,
    place_option,
)
from fewbit.cli.target_options import TargetCommand, target_options
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.frontends import Shapes
    from fewbit.language.config import Logits
    from fewbit.program.program import Program
    from fewbit.quant.cache_scheme import CacheScheme
    from fewbit.runtime import Artifact
    from fewbit.targets.target import Target

WIDTH = 150
"""Columns of the table where there is no terminal to ask."""


GRAPH = "graph"
"""The first stage, of all targets: the model as it was imported."""


class CompileCommand(TargetCommand):
    """`fewbit compile`, which takes the options of its target."""

    verb = "compile"


def compile_model(
    context: typer.Context,
    model: ModelName,
    target: TargetText = None,
    recipe: OptionalRecipe = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder to write, build/NAME if not given; with --stop-after, a file.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What the library and its functions are called.")
    ] = None,
    stop_after: Annotated[
        str | None,
        typer.Option(
            "--stop-after", metavar="STAGE", help="Print the program after this stage, and end."
        ),
    ] = None,
    dump_ir: Annotated[
        Path | None,
        typer.Option("--dump-ir", help="Write the program after every stage into this folder."),
    ] = None,
    insert_pass: Annotated[
        list[str] | None,
        typer.Option(
            "--insert-pass",
            metavar="STAGE:PASS",
            help="Run a pass after a stage: a name, or file.py:function. Repeatable.",
        ),
    ] = None,
    place: Place = None,
    integer_only: Annotated[
        bool,
        typer.Option("--integer-only", help="No floats between layers; for static recipes."),
    ] = False,
    input_shape: InputShape = None,
    constant: Constants = None,
    context_length: Context = None,
    cache: Cache = None,
    logits: LogitsOption = LogitsKind.LAST,
    sequences: Sequences = 1,
    calibrate: CalibrateData = None,
    calibration_method: OptionalMethod = None,
    samples: Samples = None,
    keep_batch_norm: KeepBatchNorm = False,
    strict: Strict = False,
) -> None:
    """Compile a model for a target, or take it to one of the compiler's stages."""
    from fewbit.cli.insert_pass import parse_inserted
    from fewbit.program.artifact import BUILD
    from fewbit.targets.compile import (
        check_target,
        choose_cache,
        compile,
        is_read_by,
        lower,
        name_of,
    )
    from fewbit.targets.registry import DEFAULT_TARGET

    target, given = target or DEFAULT_TARGET, target_options(context) | place_option(place)
    chosen = check_target(target, **given)
    _check_stop(stop_after, chosen)
    passes = parse_inserted(insert_pass or [], chosen)
    start = perf_counter()
    dump = _dump(dump_ir, chosen) if dump_ir is not None else None
    name = name or name_of(model)
    folder = output or BUILD / _folder_name(name, target)
    if recipe is None and not strict and is_read_by(chosen, model) and stop_after is None:
        _summarize(compile(model, target, folder, name=name, **given), perf_counter() - start)
        return
    program = _import(
        model,
        parse_shapes(input_shape),
        parse_constants(constant),
        name,
        context=context_length,
        cache=choose_cache(recipe, cache),
        logits=logits.value,
        sequences=sequences,
        steps=chosen.fixes_sizes,
    )
    if dump is not None:
        dump(GRAPH, program.text())
    if stop_after == GRAPH:
        _show(program.text(), output)
        return
    options = CalibrationOptions(calibrate, calibration_method, samples, keep_batch_norm, strict)
    program = options.quantize(program, recipe)
    if integer_only:
        from fewbit.passes.quant.integer_only import IntegerOnly
        from fewbit.pipeline.compilation import run_passes

        is_fixed = chosen.is_fixed_point(target)
        program = run_passes(program, IntegerOnly(strict=True, fixed_point=is_fixed))
    if stop_after is not None:
        text = lower(program, stop_after, target, name=name, passes=passes, watch=dump, **given)
        _show(text, output)
        return
    artifact = compile(program, target, folder, name=name, passes=passes, watch=dump, **given)
    _summarize(artifact, perf_counter() - start)


def _check_stop(stage: str | None, target: Target) -> None:
    if stage is not None and stage != GRAPH and stage not in target.stages:
        raise UsageError(
            f"there is no stage '{stage}'", hint=f"stages are {', '.join((GRAPH, *target.stages))}"
        )


def _import(
    model: str,
    shapes: Shapes | None,
    constants: dict[str, Any] | None,
    name: str,
    *,
    context: int | None,
    cache: CacheScheme,
    logits: Logits,
    sequences: int,
    steps: bool,
) -> Program:
    from fewbit.base.progress import progress
    from fewbit.frontends import import_model
    from fewbit.frontends.locate import takes_sizes

    zoo = model.startswith("zoo:")
    if shapes and not takes_sizes(model):
        raise UsageError(
            "the sizes of this model's inputs are fixed already",
            hint="--input-shape is for zoo:NAME, file.py:factory, model.onnx, model.keras and "
            "SavedModels",
        )
    with progress(f"Importing {name}"):
        if not zoo or not shapes:
            return import_model(
                model,
                input_shapes=shapes,
                constants=constants,
                context=context,
                cache=cache,
                logits=logits,
                sequences=sequences,
                steps=steps,
            )
        from fewbit.models.registry import create

        # By its name it would be traced with a dynamic batch.
        network = create(model.removeprefix("zoo:"))
        return import_model(network, input_shapes=shapes, context=context, steps=steps)


def _folder_name(name: str, target: str) -> str:
    """Return the name, with what is not this machine's own processor."""
    from fewbit.targets.registry import DEFAULT_TARGET

    kind, detail = TargetName.parse(target)
    return "-".join(part for part in (name, "" if kind == DEFAULT_TARGET else kind, detail) if part)


def _dump(folder: Path, target: Target) -> Callable[[str, str], None]:
    """Return what writes a numbered file for each stage; files of an earlier dump are removed."""
    from fewbit.base.files import replacing_file

    names = {
        stage: f"{i:02}-{stage}{'.mlir' if stage == GRAPH else target.suffix(stage)}"
        for i, stage in enumerate((GRAPH, *target.stages))
    }
    folder.mkdir(parents=True, exist_ok=True)
    for old in names.values():
        for variant in ("", *target.parts):
            _of_variant(folder / old, variant).unlink(missing_ok=True)

    def write(stage: str, text: str) -> None:
        stage, _, variant = stage.partition(":")
        if stage not in names:  # of a part of the program, in a folder of its own
            part, _, own = stage.rpartition("/")
            number = sum(name.startswith(f"{part}/") for name in names)
            names[stage] = f"{part}/{number:02}-{own}{target.suffix(stage)}"
        with replacing_file(_of_variant(folder / names[stage], variant)) as file:
            file.write(text.encode())

    return write


def _of_variant(path: Path, variant: str) -> Path:
    return path.with_stem(f"{path.stem}-{variant}") if variant else path


def _show(text: str, output: Path | None) -> None:
    from fewbit.base.files import replacing_file

    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    with replacing_file(output) as file:
        file.write(text.encode())


def _summarize(artifact: Artifact, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    manifest = artifact.manifest
    on = manifest.target
    if manifest.parts:
        on = ", ".join(dict.fromkeys(part.target for part in manifest.parts))
    arena = "depends on shapes" if manifest.arena_bytes is None else f"{manifest.arena_bytes:,} B"
    title = f"{manifest.name}, {manifest.recipe or 'float'}, {on}"
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for file in manifest.files:
        path = artifact.folder / file
        table.add_row(str(path), f"{path.stat().st_size:,} B")
    table.add_section()
    for variant in manifest.variants:
        table.add_row(f"weights of {variant.name}", f"{variant.weight_bytes:,} B")
    table.add_row("weights", f"{manifest.weight_bytes:,} B")
    if manifest.float_weights is not None:
        table.add_row("stay float", manifest.float_weights.amount)
    if not manifest.functions:
        table.add_row("arena", arena)
    for function in manifest.functions[1:] and manifest.functions:
        table.add_row("function", function.name)
    table.add_row("time", f"{seconds:.1f} s")
    console = Console()
    Console(width=None if console.is_terminal else WIDTH).print(table)
