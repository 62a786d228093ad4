"""`fewbit compile MODEL`: a model through the stages of the compiler, stopping where asked.

Stages: `graph`, the imported model with its module hierarchy; `mico`, quantized by the recipe;
`linalg`, lowered to upstream MLIR. The text goes to standard output or to a file.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.cli.options import InputShape, ModelName, OptionalRecipe, parse_shapes
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.program import Program


class Stage(Enum):
    GRAPH = "graph"
    MICO = "mico"
    LINALG = "linalg"


def compile_model(
    model: ModelName,
    stop_after: Annotated[
        Stage | None, typer.Option("--stop-after", help="Print the program after this stage.")
    ] = None,
    recipe: OptionalRecipe = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here, not on standard output.")
    ] = None,
    dump_ir: Annotated[
        Path | None, typer.Option("--dump-ir", help="Write the program after every stage.")
    ] = None,
    input_shape: InputShape = None,
) -> None:
    """Import a model and take it through the compiler's stages."""
    from fewbit.files import replacing_file

    if stop_after is None:
        raise UsageError(
            "this version has no target to compile for",
            hint="add --stop-after graph, mico or linalg; 'fewbit doctor' lists the targets",
        )
    stages = _stages(model, recipe, stop_after, parse_shapes(input_shape))
    if dump_ir is not None:
        dump_ir.mkdir(parents=True, exist_ok=True)
        for i, (stage, program) in enumerate(stages):
            with replacing_file(dump_ir / f"{i:02}-{stage.value}.mlir") as file:
                file.write(program.encode())
    text = stages[-1][1]
    if output is None:
        print(text, end="")
        return
    with replacing_file(output) as file:
        file.write(text.encode())


def _stages(
    model: str, recipe: str | None, last: Stage, shapes: list[tuple[int, ...]] | None
) -> list[tuple[Stage, str]]:
    """The text of the program after each stage up to the last."""
    from fewbit.frontends import import_model
    from fewbit.quant.quantize import quantize

    program = import_model(model, input_shapes=shapes)
    made = [(Stage.GRAPH, program.text())]
    if last is Stage.GRAPH:
        return made
    if recipe is not None:
        program = quantize(program, recipe)
    made.append((Stage.MICO, program.text()))
    if last is Stage.LINALG:
        made.append((Stage.LINALG, _lowered(program)))
    return made


def _lowered(program: Program) -> str:
    from xdsl.passes import PassPipeline
    from xdsl.universe import Universe

    from fewbit.ir.context import make_context
    from fewbit.ir.text import print_module
    from fewbit.ir.verify import verify
    from fewbit.transforms.pipelines import LOWER_MICO

    module = program.module.clone()
    passes = Universe.get_multiverse().all_passes
    for spec in LOWER_MICO:
        PassPipeline.parse_spec(passes, spec).apply(make_context(), module)
        verify(module, stage=spec)
    return print_module(module)
