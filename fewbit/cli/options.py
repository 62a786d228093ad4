"""Arguments and options that several verbs take."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

ModelName = Annotated[
    str,
    typer.Argument(
        help="zoo:NAME, file.py:factory, model.pt2, model.keras, program.mlir, or the folder of a "
        "SavedModel or a saved program."
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
    typer.Option("--input-shape", help="An input to trace on: 1x3x32x32, 1x16:i64. Repeatable."),
]


class CalibrationMethod(Enum):
    MINMAX = "minmax"
    PERCENTILE = "percentile"
    MSE = "mse"


CalibrateData = Annotated[
    list[str] | None,
    typer.Option(
        "--calibrate",
        metavar="DATA",
        help="Samples for static scales: a .npy or .npz file, a folder, or 'mnist'. Repeatable.",
    ),
]
OptionalMethod = Annotated[
    CalibrationMethod | None,
    typer.Option("--calibration-method", help="What a static scale covers; minmax if not given."),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", min=1, help="How many samples to calibrate with; 128 if not given."),
]

KeepBatchNorm = Annotated[
    bool,
    typer.Option(
        "--keep-batch-norm", help="Do not fold batch norms into layers before quantizing."
    ),
]


def parse_shapes(texts: list[str] | None) -> list[tuple[int, ...]] | None:
    from fewbit.frontends.input_shape import InputShape

    return [InputShape.parse(text) for text in texts] if texts else None
