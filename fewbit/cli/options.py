"""Arguments and options that several verbs take."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from fewbit.errors import UsageError

ModelName = Annotated[
    str,
    typer.Argument(
        help="zoo:NAME, file.py:factory, model.pt2, program.mlir, or a saved program's folder."
    ),
]
RecipeName = Annotated[
    str, typer.Option("--recipe", "-r", help="w4a8, w4a8g128, w1.58a8, ..., or a recipe file.")
]
OptionalRecipe = Annotated[
    str | None,
    typer.Option("--recipe", "-r", help="w4a8, w4a8g128, w1.58a8, ..., or a recipe file."),
]
InputShape = Annotated[
    list[str] | None,
    typer.Option("--input-shape", help="Shape of an input to trace on: 1x3x32x32. Repeatable."),
]

_SHAPE = re.compile(r"\d+(x\d+)*")


def parse_shapes(texts: list[str] | None) -> list[tuple[int, ...]] | None:
    if not texts:
        return None
    for text in texts:
        if not _SHAPE.fullmatch(text):
            raise UsageError(f"'{text}' is not a shape", hint="write 1x3x32x32")
    return [tuple(int(size) for size in text.split("x")) for text in texts]
