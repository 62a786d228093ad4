"""`fewbit quantize MODEL -r RECIPE -o DIR`: a quantized program, saved as a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fewbit.cli.calibration import CalibrationOptions
from fewbit.cli.options import (
    CalibrateData,
    Constants,
    Context,
    InputShape,
    KeepBatchNorm,
    ModelName,
    OptionalMethod,
    RecipeName,
    Samples,
    Strict,
    parse_constants,
    parse_shapes,
)


def quantize(
    model: ModelName,
    recipe: RecipeName,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    input_shape: InputShape = None,
    constant: Constants = None,
    context: Context = None,
    calibrate: CalibrateData = None,
    calibration_method: OptionalMethod = None,
    samples: Samples = None,
    gptq: Annotated[
        str | None,
        typer.Option(
            "--gptq",
            metavar="DATA",
            help="Choose integers by GPTQ: on a text for language models, else as --calibrate.",
        ),
    ] = None,
    keep_batch_norm: KeepBatchNorm = False,
    strict: Strict = False,
) -> None:
    """Import a model, quantize it by a recipe, and save the program."""
    from fewbit.base.progress import say
    from fewbit.frontends import import_model
    from fewbit.quant.cache_scheme import F32
    from fewbit.quant.recipe import Recipe

    options = CalibrationOptions(
        calibrate, calibration_method, samples, keep_batch_norm, strict, gptq=gptq
    )
    shapes, constants = parse_shapes(input_shape), parse_constants(constant)
    cache = Recipe.of(recipe).cache or F32
    program = import_model(
        model, input_shapes=shapes, constants=constants, context=context, cache=cache
    )
    program = options.quantize(program, recipe)
    program.save(output)
    say(f"{output}: {program.store.nbytes():,} bytes of weights")
