"""Language models: GGUF files and Hugging Face folders, as programs that keep what they read."""

from __future__ import annotations

from pathlib import Path

from fewbit.base.files import PathLike
from fewbit.errors import Place, UsageError
from fewbit.frontends.language.checks import (
    check_alone,
    check_cache,
    check_decoding,
    check_text,
    choose_context,
)
from fewbit.language.checkpoint import (
    EMBEDDING,
    HEAD,
    LAYERS,
    Checkpoint,
    OwnWeights,
    build_decoder,
    build_traced_decoder,
    open_weights,
)
from fewbit.language.config import DecoderConfig, Decoding, Logits
from fewbit.language.encoder_families import ENCODERS
from fewbit.language.encoder_folder import EncoderFolder, build_encoder, is_encoder
from fewbit.language.huggingface import is_left_to_transformers
from fewbit.language.text_files import files_for
from fewbit.numerics import Width
from fewbit.program.program import Program
from fewbit.program.store import WeightStore
from fewbit.quant.cache_scheme import F32, CacheScheme, CacheSchemeLike, note_cache

__all__ = [
    "build_decoder",
    "build_encoder",
    "choose_context",
    "import_language_model",
    "open_checkpoint",
    "open_encoder",
]


def open_checkpoint(path: PathLike) -> Checkpoint:
    """Read what a checkpoint says of itself; its weights stay in the file."""
    path = Path(path)
    if path.is_dir():
        if is_encoder(path):
            raise UsageError(
                "this is the folder of an encoder, not of a model that decodes",
                place=Place(file=str(path)),
                hint="open_encoder reads it, and 'fewbit compile' and 'run' take it as it is",
            )
        from fewbit.language.huggingface import HuggingFaceFolder

        return HuggingFaceFolder(path)
    if path.suffix == ".bin":
        from fewbit.language.mico_file import MicoFile

        return MicoFile(path)
    from fewbit.language.gguf_file import GgufFile

    return GgufFile(path)


def open_encoder(path: PathLike) -> EncoderFolder:
    """Read what the folder of an encoder says of itself; its weights stay in the files."""
    path = Path(path)
    if not is_encoder(path):
        raise UsageError(
            "this is no folder of an encoder", place=Place(file=str(path)), hint=", ".join(ENCODERS)
        )
    return EncoderFolder(path)


def import_language_model(
    path: PathLike,
    context: int | None = None,
    cache: CacheSchemeLike = F32,
    logits: Logits = "last",
    sequences: int = 1,
    *,
    steps: bool = False,
) -> Program:
    """Return a program of tokens, their position and the caches, with what text needs beside it.

    That of an encoder is of tokens alone. Decoders that transformers reads keep floats of their
    own type, one sequence, and give the last token's logits. With `steps`, a call takes one token,
    and no size depends on its position.
    """
    cache = CacheScheme.of(cache)
    check_decoding(logits, sequences)
    if is_left_to_transformers(Path(path)):
        from fewbit.frontends.language.transformers_model import import_folder

        check_alone("a decoder that transformers reads", cache, logits, sequences)
        return import_folder(Path(path), context, steps=steps)
    if is_encoder(Path(path)):
        from fewbit.frontends.language.import_encoder import import_encoder

        check_alone("an encoder", cache, logits, sequences)
        return import_encoder(Path(path), context)
    checkpoint = open_checkpoint(path)
    context = choose_context(checkpoint, checkpoint.config.longest, context)
    check_cache(checkpoint, cache, checkpoint.config.head_width)
    check_text(checkpoint, checkpoint.config.vocabulary)
    decoding = Decoding(context, cache, logits, sequences, steps)
    program = _import_decoder(checkpoint, decoding)
    program.files = files_for(checkpoint.text, decoding, checkpoint.config.vocabulary)
    return _take_integers(program, checkpoint)


def _import_decoder(checkpoint: Checkpoint, decoding: Decoding) -> Program:
    from fewbit.frontends.language.repeat_layers import repeat_layers

    weights, config = open_weights(checkpoint), checkpoint.config
    if config.tied:
        weights.merge(weights.select({HEAD: EMBEDDING}))
    kinds = list(dict.fromkeys(config.layers))
    short = _import_kinds(config, decoding, weights)
    program = repeat_layers(short, LAYERS, [kinds.index(kind) for kind in config.layers], weights)
    program.own_weights = OwnWeights(checkpoint)
    note_cache(program.module, decoding.cache)
    return program


def _take_integers(program: Program, checkpoint: Checkpoint) -> Program:
    """Quantize layers whose integers the checkpoint has, where it fixes their activations, too."""
    widths = {name: checkpoint.act_bits(name) for name in program.own_weights}
    fixed = {name: bits for name, bits in widths.items() if bits is not None}
    if not fixed:
        return program
    from fewbit.ir.layers import layers
    from fewbit.quant.quantize import quantize
    from fewbit.quant.recipe import LayerScheme, Recipe

    schemes = dict.fromkeys(layers(program.module), LayerScheme())
    schemes |= {name: LayerScheme(act=Width.of(bits)) for name, bits in fixed.items()}
    return quantize(program, Recipe.with_exceptions(schemes))


def _import_kinds(config: DecoderConfig, decoding: Decoding, weights: WeightStore) -> Program:
    """Return the program of a decoder with one layer of each kind."""
    import torch

    from fewbit.frontends.torch import import_with_weights

    model = build_traced_decoder(config, decoding)
    sequences = decoding.sequences
    tokens = torch.zeros(sequences, 1 if decoding.steps else 4, dtype=torch.int64)
    position = torch.zeros(sequences, dtype=torch.int64)
    if decoding.steps:
        return import_with_weights(model, (tokens, position), None, weights)
    # torch.export takes a length of 1 for a constant; a compiled program takes it, too.
    length = torch.export.Dim("length", min=2, max=decoding.context)
    return import_with_weights(model, (tokens, position), ({1: length}, None), weights)
