"""A checkpoint: a configuration, tensors that are read one by one, and what text needs.

Names and shapes are compared with the decoder's before any tensor is read, and nothing is left
over: a bias that the decoder does not have would be missing in its results. Tensors of float32 that
lie in a file as the decoder has them are mapped; others are converted whenever they are read, so
that no more than one is in memory. A decoder to trace has but one layer of each kind, and weights
that only say their shapes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.base.progress import progress
from fewbit.errors import Error, Place, UnsupportedError
from fewbit.language.config import DecoderConfig
from fewbit.language.pieces import Array, Piece, find_piece
from fewbit.language.text_files import TextFiles
from fewbit.numerics import Quantized
from fewbit.program.store import WeightStore

if TYPE_CHECKING:
    from fewbit.language.decoder import LanguageModel

LAYERS = "model.layers"
"""Where the layers of the decoder are, each under its number."""
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
SHOWN = 4
"""How many tensors a message names."""
FLOATS = ("float32", "float16", "bfloat16", "float64")
IGNORED = (".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", HEAD)
"""Ends of names that are no weights, or the embedding again."""


class Checkpoint:
    """What a file or folder holds; subclasses know the format."""

    path: Path
    family: str
    """The name of the architecture in Hugging Face's words."""
    config: DecoderConfig
    text: TextFiles | None
    """None where there is no tokenizer."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of all tensors, by the names of the format."""
        raise NotImplementedError

    def read(self, key: str) -> Array:
        """Return a tensor; mapped, if the format allows it."""
        raise NotImplementedError

    def quantized_weights(self) -> dict[str, Quantized]:
        """Return weights whose integers the checkpoint has, by the names of layers."""
        return {}

    def act_bits(self, layer: str) -> int:
        """Return the width of activations of a layer whose integers the checkpoint has."""
        return 8

    def find(self, name: str) -> tuple[Piece, int | None]:
        """Return where a weight of the decoder is, by the names of the format."""
        return find_piece(self.family, self.config, name)

    @property
    def place(self) -> Place:
        return Place(file=str(self.path))


def open_weights(checkpoint: Checkpoint) -> WeightStore:
    """Return all weights of the decoder by their names, as float32; none is read yet."""
    shapes = _weight_shapes(checkpoint.config)
    pieces = {name: checkpoint.find(name) for name in shapes}
    _check_shapes(checkpoint, shapes, pieces)
    _check_leftovers(checkpoint, {piece.key for piece, _ in pieces.values()})
    store = WeightStore()
    for name, (piece, _) in pieces.items():
        read = partial(_as_float, checkpoint, piece)
        store.add_computed(name, shapes[name], np.dtype(np.float32), read)
    return store


def build_decoder(checkpoint: Checkpoint, context: int) -> LanguageModel:
    """Return the decoder with the weights of a checkpoint, ready to be called."""
    import torch

    store = open_weights(checkpoint)
    weights: dict[str, Any] = {}
    with progress("Reading weights", total=len(store)) as step, warnings.catch_warnings():
        # A mapped file cannot be written to, and nobody does.
        warnings.filterwarnings("ignore", message=".*not writable.*")
        for name in store:
            weights[name] = torch.as_tensor(store[name])
            step()
    return _make_decoder(checkpoint.config, weights, context)


def build_traced_decoder(config: DecoderConfig, context: int) -> LanguageModel:
    """Return a decoder with one layer of each kind, whose weights have shapes and no memory."""
    import torch

    short = replace(config, layers=tuple(dict.fromkeys(config.layers)))
    shapes = _weight_shapes(short)
    weights = {name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}
    return _make_decoder(short, weights, context)


def _make_decoder(config: DecoderConfig, weights: Mapping[str, Any], context: int) -> LanguageModel:
    from torch.nn import Parameter

    model = _empty_decoder(config)
    parameters = {name: Parameter(data, requires_grad=False) for name, data in weights.items()}
    if config.tied:
        parameters[HEAD] = parameters[EMBEDDING]
    model.load_state_dict(parameters, assign=True)
    model.model.allocate(context)
    return model.eval()


def _empty_decoder(config: DecoderConfig) -> LanguageModel:
    import torch

    from fewbit.language.decoder import LanguageModel

    with torch.device("meta"):
        return LanguageModel(config)


def _weight_shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights by their names; a tied head is the embedding.

    Layers have the same shapes, so one of them is built.
    """
    model = _empty_decoder(replace(config, layers=config.layers[:1]))
    shapes: dict[str, tuple[int, ...]] = {}
    for name, tensor in model.state_dict().items():
        numbers = range(len(config.layers)) if name.startswith(f"{LAYERS}.0.") else [0]
        for number in numbers:
            own = name.replace(f"{LAYERS}.0.", f"{LAYERS}.{number}.")
            shapes[own] = tuple(tensor.shape)
    if config.tied:
        del shapes[HEAD]
    return shapes


def _as_float(checkpoint: Checkpoint, piece: Piece) -> Array:
    array = piece.take(checkpoint.read(piece.key))
    if str(array.dtype) not in FLOATS:
        raise UnsupportedError(
            f"the tensor '{piece.key}' is of {array.dtype}, which is no float",
            place=checkpoint.place,
        )
    return np.ascontiguousarray(array, np.float32)


def _check_shapes(
    checkpoint: Checkpoint,
    wanted: Mapping[str, tuple[int, ...]],
    pieces: Mapping[str, tuple[Piece, int | None]],
) -> None:
    shapes = checkpoint.shapes
    keys = dict.fromkeys(piece.key for piece, _ in pieces.values())
    if missing := [key for key in keys if key not in shapes]:
        raise Error(
            f"the checkpoint lacks {_names(missing)}",
            place=checkpoint.place,
            hint="is it whole? A sharded one needs all its files beside the index",
        )
    for name, (piece, total) in pieces.items():
        shape, expected = shapes[piece.key], piece.shape_in_file(wanted[name], total)
        if shape != expected:
            raise Error(
                f"the tensor '{piece.key}' is {_sizes(shape)}, and the configuration says "
                f"{_sizes(expected)}",
                place=checkpoint.place,
                hint="configuration and weights are of different models",
            )


def _check_leftovers(checkpoint: Checkpoint, used: set[str]) -> None:
    left = [key for key in checkpoint.shapes if key not in used and not key.endswith(IGNORED)]
    if left:
        raise UnsupportedError(
            f"the checkpoint has {_names(left)}, which the decoder of "
            f"'{checkpoint.family}' does not have",
            place=checkpoint.place,
        )


def _names(keys: list[str]) -> str:
    shown = ", ".join(f"'{key}'" for key in keys[:SHOWN])
    return shown if len(keys) <= SHOWN else f"{shown} and {len(keys) - SHOWN} more tensors"


def _sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
