"""`fewbit export MODEL -o FILE`: a checkpoint of a language model as a file of other programs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fewbit.cli.options import Context, OptionalRecipe
from fewbit.errors import Place, UsageError
from fewbit.language.export.weight_type import WeightType

if TYPE_CHECKING:
    from fewbit.language.checkpoint import Checkpoint


class Format(Enum):
    """Whose file it is."""

    GGUF = "gguf"
    MICO = "mico"


SUFFIXES = {".gguf": Format.GGUF, ".bin": Format.MICO}


def export(
    model: Annotated[
        str, typer.Argument(help="model.gguf, or the folder of a Hugging Face model.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write: .gguf, or .bin for MiCo.")
    ],
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Whose file it is, if the suffix does not say it."),
    ] = None,
    type: Annotated[
        WeightType | None,
        typer.Option("--type", help="What matrices of a GGUF file are; f16 if not given."),
    ] = None,
    recipe: OptionalRecipe = None,
    context: Context = None,
) -> None:
    """Write a language model for llama.cpp (GGUF) or MiCo's llama2.c."""
    from fewbit.base.progress import say

    chosen = format or SUFFIXES.get(output.suffix)
    if chosen is None:
        raise UsageError(
            f"'{output.name}' does not say which format is wanted",
            hint="call it .gguf or .bin, or give --format gguf or --format mico",
        )
    _check_options(chosen, type, recipe, context)
    checkpoint = _open(model)
    if chosen is Format.GGUF:
        from fewbit.language.export.write_gguf import write_gguf

        write_gguf(checkpoint, output, type or WeightType.F16)
    else:
        from fewbit.frontends.language import choose_context
        from fewbit.language.export.write_mico import write_mico

        assert recipe is not None
        longest = checkpoint.config.longest
        write_mico(checkpoint, output, recipe, choose_context(checkpoint, longest, context))
    say(f"{output}: {output.stat().st_size:,} bytes")


def _check_options(
    chosen: Format, type: WeightType | None, recipe: str | None, context: int | None
) -> None:
    if chosen is Format.GGUF and (recipe is not None or context is not None):
        raise UsageError(
            f"{'--recipe' if recipe is not None else '--context'} is for MiCo's format",
            hint="say what a GGUF file's matrices are by --type: q4_0, q8_0, f16 or f32",
        )
    if chosen is Format.MICO and type is not None:
        raise UsageError("--type is for GGUF", hint="give a recipe: -r w8a8-tensor")
    if chosen is Format.MICO and recipe is None:
        raise UsageError(
            "MiCo's format has few-bit weights, and no recipe says how many",
            hint="add -r w8a8-tensor, for example",
        )


def _open(model: str) -> Checkpoint:
    from fewbit.frontends.language import open_checkpoint
    from fewbit.frontends.language.frontend import Language

    path = Path(model)
    if not path.exists():
        raise UsageError(f"there is no file or folder '{model}'")
    if not Language().reads(path):
        raise UsageError(
            "this is no checkpoint of a language model, and nothing else is exported",
            place=Place(file=model),
            hint="give a GGUF file or a Hugging Face folder; other models are compiled: "
            f"fewbit compile {model}",
        )
    return open_checkpoint(path)
