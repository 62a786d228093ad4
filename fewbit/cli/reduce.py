"""`fewbit reduce FILE`: the smallest part of a model that still fails, for a report of a bug."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fewbit.cli.options import AsJson, ModelName, OptionalRecipe, TargetText


def reduce(
    model: ModelName,
    target: TargetText = None,
    recipe: OptionalRecipe = None,
    interpret: Annotated[
        bool, typer.Option("--interpret", help="Compile nothing: is the imported program right?")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the smallest model is written: FILE.reduced.onnx, or FILE.reduced, the "
            "folder of a program, if not given.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="How long one try may take.")
    ] = 120.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the random inputs.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Find the smallest part of a model that fails as the whole does.

    A model fails if it is refused, ends in an internal error or a crash, takes too long, or gives
    wrong results: the interpreter others than the tool that the model comes from, or the target
    others than the interpreter.
    """
    from fewbit.base.json_output import print_json
    from fewbit.base.progress import say
    from fewbit.reduce import Case, reduce_model
    from fewbit.reduce.check import INTERPRETER
    from fewbit.targets.registry import DEFAULT_TARGET

    case = Case(INTERPRETER if interpret else target or DEFAULT_TARGET, recipe, seed, seconds)
    reduced = reduce_model(Path(model), output, case, lambda ops: say(f"{ops} ops left"))
    if as_json:
        print_json(
            {
                "failure": {"kind": reduced.failure.kind, "what": reduced.failure.what},
                "ops": {"before": reduced.before, "after": reduced.after},
                "output": str(reduced.path),
            }
        )
        return
    print(reduced.failure)
    print(f"{reduced.before} ops before, {reduced.after} after: {reduced.path}")
