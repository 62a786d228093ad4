"""Language models: GGUF files and Hugging Face folders, as programs that keep what they read."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path

from fewbit.base.files import PathLike
from fewbit.errors import FewbitWarning, UsageError
from fewbit.language.checkpoint import (
    EMBEDDING,
    HEAD,
    LAYERS,
    Checkpoint,
    build_decoder,
    build_traced_decoder,
    open_weights,
)
from fewbit.language.config import DecoderConfig
from fewbit.language.huggingface import is_left_to_transformers
from fewbit.language.text_files import TOKENIZER, files_for
from fewbit.language.tokenizer import check_vocabulary, open_tokenizer
from fewbit.numerics import Width
from fewbit.program.program import Program
from fewbit.program.store import WeightStore

__all__ = ["build_decoder", "choose_context", "import_language_model", "open_checkpoint"]

CONTEXT = 2048
"""Tokens that are kept where no other number is given, and the model allows as many."""
SMALLEST = 8


def open_checkpoint(path: PathLike) -> Checkpoint:
    """Read what a checkpoint says of itself; its weights stay in the file."""
    path = Path(path)
    if path.is_dir():
        from fewbit.language.huggingface import HuggingFaceFolder

        return HuggingFaceFolder(path)
    if path.suffix == ".bin":
        from fewbit.language.mico_file import MicoFile

        return MicoFile(path)
    from fewbit.language.gguf_file import GgufFile

    return GgufFile(path)


def import_language_model(path: PathLike, context: int | None = None) -> Program:
    """Return a program of tokens, their position and the caches, with what text needs beside it."""
    from fewbit.frontends.language.repeat_layers import repeat_layers

    if is_left_to_transformers(Path(path)):
        from fewbit.frontends.language.transformers_model import import_folder

        return import_folder(Path(path), context)
    checkpoint = open_checkpoint(path)
    context = choose_context(checkpoint, context)
    _check_text(checkpoint)
    weights, config = open_weights(checkpoint), checkpoint.config
    if config.tied:
        weights.merge(weights.select({HEAD: EMBEDDING}))
    kinds = list(dict.fromkeys(config.layers))
    short = _import_kinds(config, context, weights)
    program = repeat_layers(short, LAYERS, [kinds.index(kind) for kind in config.layers], weights)
    program.files = files_for(checkpoint.text, context, checkpoint.config.vocabulary)
    return _take_integers(program, checkpoint)


def _take_integers(program: Program, checkpoint: Checkpoint) -> Program:
    """Give layers the integers that a checkpoint has for them; others stay float."""
    given = checkpoint.quantized_weights()
    if not given:
        return program
    from fewbit.ir.layers import layers
    from fewbit.quant.quantize import quantize
    from fewbit.quant.recipe import LayerScheme, Recipe

    schemes = dict.fromkeys(layers(program.module), LayerScheme())
    for name, weight in given.items():
        act = Width.of(checkpoint.act_bits(name))
        schemes[name] = LayerScheme(weight=weight.width, act=act, granularity="tensor")
    ((default, _),) = Counter(schemes.values()).most_common(1)
    others = {name: scheme for name, scheme in schemes.items() if scheme != default}
    return quantize(program, Recipe(default=default, layers=others), weights=given)


def _import_kinds(config: DecoderConfig, context: int, weights: WeightStore) -> Program:
    """Return the program of a decoder with one layer of each kind."""
    import torch

    from fewbit.frontends.torch import import_with_weights

    model = build_traced_decoder(config, context)
    tokens, position = torch.zeros(1, 4, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    # torch.export takes a length of 1 for a constant; a compiled program takes it, too.
    length = torch.export.Dim("length", min=2, max=context)
    return import_with_weights(model, (tokens, position), ({1: length}, None), weights)


def choose_context(checkpoint: Checkpoint, asked: int | None) -> int:
    """Return how many tokens are kept: those that are asked for, or a default."""
    longest = checkpoint.config.longest
    if asked is None:
        return min(longest, CONTEXT)
    if not SMALLEST <= asked <= longest:
        raise UsageError(
            f"a context of {asked} tokens is not possible",
            place=checkpoint.place,
            hint=f"the model was trained for {longest}, and {SMALLEST} is the smallest",
        )
    return asked


def _check_text(checkpoint: Checkpoint) -> None:
    text = checkpoint.text
    if text is None:
        warnings.warn(
            f"the checkpoint has no {TOKENIZER}: what is compiled takes tokens, and no text",
            FewbitWarning,
            stacklevel=2,
        )
        return
    tokenizer = open_tokenizer(text.tokenizer)
    check_vocabulary(tokenizer, checkpoint.config.vocabulary, checkpoint.path)
