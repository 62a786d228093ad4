"""Encoders: Hugging Face folders as programs from a text's tokens to states or to one vector.

Sizes that a folder of sentence-transformers names are those of the texts that its model was trained
on, and not a limit: another context may be asked for, as far as there are positions.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import cast

from xdsl.dialects.func import FuncOp

from fewbit.errors import FewbitWarning
from fewbit.frontends.language.checks import check_text, choose_context
from fewbit.frontends.language.repeat_layers import repeat_layers
from fewbit.ir.symbols import SymbolTable
from fewbit.language.checkpoint import LAYERS, open_weights
from fewbit.language.config import EncoderConfig
from fewbit.language.encoder_folder import EncoderFolder, build_traced_encoder
from fewbit.language.text_files import encoder_files
from fewbit.program.output_names import name_outputs
from fewbit.program.program import Program
from fewbit.program.store import WeightStore

STATES, EMBEDDING = "last_hidden_state", "embedding"


def import_encoder(path: Path, context: int | None = None) -> Program:
    """Return the program of an encoder, with what text needs beside it."""
    checkpoint = EncoderFolder(path)
    config, usual = checkpoint.config, checkpoint.sentence.longest
    longest = config.longest
    if context is None and usual is not None:
        context = usual if longest is None else min(usual, longest)
    context = choose_context(checkpoint, longest, context)
    check_text(checkpoint, config.vocabulary)
    weights = open_weights(checkpoint)
    if checkpoint.has_decoder:
        warnings.warn(
            "the model is an encoder and a decoder: the encoder alone is read",
            FewbitWarning,
            stacklevel=2,
        )
    short = _import_layer(config, context, weights)
    program = repeat_layers(short, LAYERS, [0] * config.depth, weights)
    main = cast(FuncOp, SymbolTable(program.module)["main"])
    name_outputs(main, [STATES if config.pooling is None else EMBEDDING])
    program.files = encoder_files(
        checkpoint.text, context, config.vocabulary, checkpoint.sentence.prompt
    )
    return program


def _import_layer(config: EncoderConfig, context: int, weights: WeightStore) -> Program:
    """Return the program of an encoder with one layer."""
    import torch

    from fewbit.frontends.torch import import_with_weights

    model = build_traced_encoder(config, context)
    tokens = torch.zeros(1, 4, dtype=torch.int64)
    # torch.export takes a length of 1 for a constant; a compiled program takes it, too.
    length = torch.export.Dim("length", min=2, max=context)
    return import_with_weights(model, (tokens,), ({1: length},), weights)
