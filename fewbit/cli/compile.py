"""`fewbit compile MODEL -t TARGET -o DIR`: an artifact, or the program after one of the stages.

Stages: `graph`, the imported model with its module hierarchy; then those of the target, from
`mico`, quantized by the recipe, to `object`, shown as assembly. `--stop-after` prints the text of
one of them, `--dump-ir` writes that of all, and `--insert-pass` runs a pass after one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.options import (
    CalibrateData,
    Constants,
    InputShape,
    KeepBatchNorm,
    ModelName,
    OptionalMethod,
    OptionalRecipe,
    Samples,
    parse_constants,
    parse_shapes,
)
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.frontends import Shapes
    from fewbit.program import Program
    from fewbit.runtime import Artifact

BUILD = Path("build")
"""The folder in which artifacts are put where no other is named."""

WIDTH = 150
"""Columns of the table where there is no terminal to ask."""


class Stage(Enum):
    GRAPH = "graph"
    MICO = "mico"
    KERNEL = "kernel"
    LINALG = "linalg"
    MEMREF = "memref"
    LOOPS = "loops"
    LLVM = "llvm"
    OBJECT = "object"


SUFFIXES = {Stage.LLVM: ".ll", Stage.OBJECT: ".s"}
"""Of files that are not MLIR."""


def compile_model(
    model: ModelName,
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", help="cpu, or cpu:PROCESSOR: aarch64, riscv64, x86-64-v3, ..."
        ),
    ] = "cpu",
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
        Stage | None,
        typer.Option("--stop-after", help="Print the program after this stage, and end."),
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
    blas: Annotated[
        str | None,
        typer.Option(
            "--blas",
            metavar="LIBRARY",
            help="Multiply float matrices by this CBLAS library: openblas, mkl, blis, or a path.",
        ),
    ] = None,
    integer_only: Annotated[
        bool,
        typer.Option("--integer-only", help="No floats between layers; for static recipes."),
    ] = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile", help="The library counts the time of each layer; see its header."
        ),
    ] = False,
    cpu_variants: Annotated[
        str | None,
        typer.Option(
            "--cpu-variants",
            metavar="NAMES",
            help="Code for several processors in one library: names with commas, auto, or all.",
        ),
    ] = None,
    input_shape: InputShape = None,
    constant: Constants = None,
    calibrate: CalibrateData = None,
    calibration_method: OptionalMethod = None,
    samples: Samples = None,
    keep_batch_norm: KeepBatchNorm = False,
) -> None:
    """Compile a model for a target, or take it to one of the compiler's stages."""
    from fewbit.cli.insert_pass import parse_inserted
    from fewbit.targets.compile import check_target, compile, lower, name_of
    from fewbit.targets.cpu.cblas import find_blas

    check_target(target)
    _check_variants(cpu_variants, target, stop_after)
    find_blas(blas)
    passes = parse_inserted(insert_pass or [])
    start = perf_counter()
    dump = _dump(dump_ir) if dump_ir is not None else None
    name = name or name_of(model)
    program = _imported(model, parse_shapes(input_shape), parse_constants(constant), name)
    if dump is not None:
        dump("graph", program.text())
    if stop_after is Stage.GRAPH:
        _show(program.text(), output)
        return
    options = CalibrationOptions(calibrate, calibration_method, samples, keep_batch_norm)
    program = options.quantize(program, recipe)
    if integer_only:
        from fewbit.transforms.integer_only import integer_only as without_floats

        program = without_floats(program, strict=True)
    if stop_after is not None:
        text = lower(
            program, stop_after.value, target, name=name, passes=passes, watch=dump, blas=blas
        )
        _show(text, output)
        return
    folder = output or BUILD / _folder_name(name, target)
    made = compile(
        program, target, folder, name=name, passes=passes, watch=dump, blas=blas, profile=profile,
        cpu_variants=cpu_variants,
    )  # fmt: skip
    _summarize(made, perf_counter() - start)


def _check_variants(names: str | None, target: str, stop_after: Stage | None) -> None:
    from fewbit.targets.cpu.target import isa_of
    from fewbit.targets.cpu.variants import variants_of

    if names is None:
        return
    variants_of(names, isa_of(target))
    if stop_after is not None:
        raise UsageError(
            "--stop-after shows the program for one processor, and --cpu-variants names several",
            hint="give one of them as the target, or write all stages with --dump-ir",
        )


def _imported(
    model: str, shapes: Shapes | None, constants: dict[str, Any] | None, name: str
) -> Program:
    from fewbit.frontends import import_model
    from fewbit.frontends.foreign import takes_shapes
    from fewbit.progress import progress

    zoo = model.startswith("zoo:")
    traced = zoo or ".py:" in model or model.endswith(".onnx") or takes_shapes(model)
    if shapes and not traced:
        raise UsageError(
            "the sizes of this model's inputs are fixed already",
            hint="--input-shape is for zoo:NAME, file.py:factory, model.onnx, model.keras and "
            "SavedModels",
        )
    with progress(f"Importing {name}"):
        if not zoo or not shapes:
            return import_model(model, input_shapes=shapes, constants=constants)
        from fewbit.models.registry import create

        # By its name it would be traced with a dynamic batch.
        return import_model(create(model.removeprefix("zoo:")), input_shapes=shapes)


def _folder_name(name: str, target: str) -> str:
    processor = target.partition(":")[2]
    return f"{name}-{processor}" if processor else name


def _dump(folder: Path) -> Callable[[str, str], None]:
    """Writes a numbered file for each stage, after removing those of an earlier dump."""
    from fewbit.files import replacing_file
    from fewbit.kernels.isa import names as processors

    names = {s: f"{i:02}-{s.value}{SUFFIXES.get(s, '.mlir')}" for i, s in enumerate(Stage)}
    folder.mkdir(parents=True, exist_ok=True)
    for old in names.values():
        for variant in ("", *processors()):
            _of_variant(folder / old, variant).unlink(missing_ok=True)

    def write(stage: str, text: str) -> None:
        stage, _, variant = stage.partition(":")
        with replacing_file(_of_variant(folder / names[Stage(stage)], variant)) as file:
            file.write(text.encode())

    return write


def _of_variant(path: Path, variant: str) -> Path:
    return path.with_stem(f"{path.stem}-{variant}") if variant else path


def _show(text: str, output: Path | None) -> None:
    from fewbit.files import replacing_file

    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return
    with replacing_file(output) as file:
        file.write(text.encode())


def _summarize(artifact: Artifact, seconds: float) -> None:
    from rich.console import Console
    from rich.table import Table

    manifest = artifact.manifest
    arena = "depends on shapes" if manifest.arena_bytes is None else f"{manifest.arena_bytes:,} B"
    title = f"{manifest.name}, {manifest.recipe or 'float'}, {manifest.target}"
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
    table.add_row("arena", arena)
    table.add_row("time", f"{seconds:.1f} s")
    console = Console()
    Console(width=None if console.is_terminal else WIDTH).print(table)
