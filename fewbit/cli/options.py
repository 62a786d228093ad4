"""Arguments and options that several verbs take."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.cli.completion import complete_models, complete_recipes, complete_targets
from fewbit.errors import UsageError, WidthError

if TYPE_CHECKING:
    from fewbit.frontends import Shapes

SEVERAL_TARGETS = "Several targets"
LANGUAGE_MODELS = "Language models"
"""The panel of the help with options that only these take."""
ModelName = Annotated[
    str,
    typer.Argument(
        help="zoo:NAME, file.py:factory, package:call(), model.onnx, model.pt2, model.keras, "
        "model.gguf, program.mlir, or the folder of a SavedModel, a Hugging Face model or a saved "
        "program.",
        autocompletion=complete_models,
    ),
]


def _check_recipe(context: typer.Context, text: str | None) -> str | None:
    """Refuse what is no recipe before a verb begins; whether it fits the model is seen later."""
    if text is not None and not context.resilient_parsing:
        from fewbit.quant.recipe import Recipe

        try:
            Recipe.of(text)
        except WidthError as e:
            # A width that does not exist is an error of the command here, as any other word is.
            raise UsageError(e.what, place=e.place, hint=e.hint, excerpt=e.excerpt) from e
    return text


_RECIPE = typer.Option(
    "--recipe",
    "-r",
    help="w4a8, w4a8g128, w1.58a8, ..., or a recipe file.",
    callback=_check_recipe,
    autocompletion=complete_recipes,
)
RecipeName = Annotated[str, _RECIPE]
OptionalRecipe = Annotated[str | None, _RECIPE]
TargetText = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="What is compiled for.",
        show_default=False,
        autocompletion=complete_targets,
    ),
]
Place = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="PATTERN=TARGET",
        help="Modules that run on other targets: layers.0=TARGET,re:.*attn=TARGET; the first rule "
        "that fits decides. Repeatable.",
        rich_help_panel=SEVERAL_TARGETS,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Batch = Annotated[
    int, typer.Option("--batch", min=1, help="The size of dynamic dimensions, where it matters.")
]
InputShape = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        help="An input to trace on: 1x3x32x32, 1x16:i64; in ONNX also x=1x3, batch=4. Repeatable.",
    ),
]
Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant",
        metavar="NAME=VALUE",
        help="Build a value of an ONNX model's input in: sr=16000, axes=0,2. Repeatable.",
    ),
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context",
        min=1,
        metavar="TOKENS",
        help="How many tokens a language model keeps; up to 2048 if not given.",
        rich_help_panel=LANGUAGE_MODELS,
    ),
]


def _check_cache(context: typer.Context, text: str | None) -> str | None:
    """Refuse what is no scheme for keys and values before a verb begins."""
    if text is not None and not context.resilient_parsing:
        from fewbit.quant.cache_scheme import CacheScheme

        CacheScheme.of(text)
    return text


Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="f32|f16|q8|q4|q8h64|q4h64",
        callback=_check_cache,
        help="What keys and values are kept as; f16 with a recipe that does not say, f32 without.",
        rich_help_panel=LANGUAGE_MODELS,
    ),
]


class LogitsKind(Enum):
    """Which logits a call of a language model gives."""

    LAST = "last"
    ALL = "all"


LogitsOption = Annotated[
    LogitsKind,
    typer.Option(
        "--logits",
        help="Give the logits behind the last token of a call, or behind all of them.",
        rich_help_panel=LANGUAGE_MODELS,
    ),
]
Sequences = Annotated[
    int,
    typer.Option(
        "--sequences",
        min=1,
        metavar="COUNT",
        help="Decode so many texts together, each with a position of its own.",
        rich_help_panel=LANGUAGE_MODELS,
    ),
]


class CalibrationMethod(Enum):
    """How static scales are found from samples."""

    MINMAX = "minmax"
    PERCENTILE = "percentile"
    MSE = "mse"


CalibrateData = Annotated[
    list[str] | None,
    typer.Option(
        "--calibrate",
        metavar="DATA",
        help="Samples for static scales: a .npy or .npz file, a folder, or 'mnist'; repeatable. Or "
        "a .json file with scales.",
    ),
]
OptionalMethod = Annotated[
    CalibrationMethod | None,
    typer.Option("--calibration-method", help="What a static scale covers; minmax if not given."),
]
Samples = Annotated[
    int | None,
    typer.Option("--samples", min=1, help="How many samples of the data to use; 128 if not given."),
]

Strict = Annotated[
    bool,
    typer.Option("--strict", help="Fail where weights stay float that the recipe does not name."),
]
KeepBatchNorm = Annotated[
    bool,
    typer.Option(
        "--keep-batch-norm", help="Do not fold batch norms into layers before quantizing."
    ),
]


def parse_shapes(texts: list[str] | None) -> Shapes | None:
    """Return shapes in order, or by the names of inputs and sizes: `x=1x3x32x32`, `batch=4`."""
    from fewbit.frontends.input_shape import InputShape

    if not texts:
        return None
    named = [text.rpartition("=")[::2] for text in texts]
    if not any(name for name, _ in named):
        return [InputShape.parse(text) for text in texts]
    if not all(name for name, _ in named):
        raise UsageError("some input shapes have names and some have none")
    return {name: InputShape.parse(text) for name, text in named}


def parse_constants(texts: list[str] | None) -> dict[str, Any] | None:
    """Return numbers by name; several are a list."""
    if not texts:
        return None
    constants: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            numbers = [_number(word) for word in value.split(",")]
        except ValueError:
            equals = ""
            numbers = []
        if not equals:
            raise UsageError(f"'{text}' is no constant", hint="write sr=16000, or axes=0,2")
        constants[name] = numbers if "," in value else numbers[0]
    return constants


def place_option(rules: list[str] | None) -> dict[str, Any]:
    """Return the argument for a placement, where there is one."""
    return {} if rules is None else {"place": ",".join(rules)}


def _number(word: str) -> float:
    return int(word) if word.strip().lstrip("+-").isdigit() else float(word)
