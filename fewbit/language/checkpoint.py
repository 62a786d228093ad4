"""A checkpoint: a configuration, tensors that are read one by one, and what text needs.

Names and shapes are compared with the model's before any tensor is read, and nothing is left
over: a bias that the model does not have would be missing in its results. Tensors of float32 that
lie in a file as the model has them are mapped; others are converted whenever they are read, so
that no more than one is in memory. A decoder to trace has but one layer of each kind, and weights
that only say their shapes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.base.progress import progress
from fewbit.errors import Error, Place, UnsupportedError
from fewbit.language.config import DecoderConfig, Decoding
from fewbit.language.pieces import Array, Piece, find_piece
from fewbit.language.text_files import TextFiles
from fewbit.numerics import Quantized
from fewbit.program.store import WeightStore

if TYPE_CHECKING:
    from torch import nn

    from fewbit.language.decoder import LanguageModel

LAYERS = "model.layers"
"""Where the layers of a model are, each under its number."""
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
SHOWN = 4
"""How many tensors a message names."""
FLOATS = ("float32", "float16", "bfloat16", "float64")
IGNORED = (".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", HEAD)
"""Ends of names that are no weights, or the embedding again."""


class WeightSource:
    """The tensors of a file or folder, and which of them are the weights of a model of ours."""

    path: Path
    family: str
    """The name of the architecture in Hugging Face's words."""
    text: TextFiles | None
    """None where there is no tokenizer."""
    is_mapped: bool = False
    """Whether some rows of a tensor can be read alone."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of all tensors, by the names of the format."""
        raise NotImplementedError

    def read(self, key: str) -> Array:
        """Return a tensor; mapped, if the format allows it."""
        raise NotImplementedError

    def has_integers(self, key: str) -> bool:
        """Return whether a tensor is a matrix of few-bit integers."""
        return False

    def read_integers(self, key: str) -> Quantized:
        """Return a matrix with its own integers, scales and offsets."""
        raise NotImplementedError

    def act_bits(self, layer: str) -> int | None:
        """Return the width of a layer's activations; None where the checkpoint leaves it open."""
        return None

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of all weights of the model, by our names."""
        raise NotImplementedError

    def find(self, name: str) -> tuple[Piece, int | None]:
        """Return where a weight of the model is, by the names of the format."""
        raise NotImplementedError

    def is_ignored(self, key: str) -> bool:
        """Return whether a tensor is none that the model lacks if it is not used."""
        raise NotImplementedError

    @property
    def place(self) -> Place:
        return Place(file=str(self.path))


class Checkpoint(WeightSource):
    """What a file or folder holds of a decoder; subclasses know the format."""

    config: DecoderConfig

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        return _weight_shapes(self.config)

    def find(self, name: str) -> tuple[Piece, int | None]:
        return find_piece(self.family, self.config, name)

    def is_ignored(self, key: str) -> bool:
        return key.endswith(IGNORED)


def open_weights(checkpoint: WeightSource) -> WeightStore:
    """Return all weights of the model by their names, as float32; none is read yet."""
    shapes = checkpoint.weight_shapes()
    pieces = {name: checkpoint.find(name) for name in shapes}
    _check_shapes(checkpoint, shapes, pieces)
    _check_leftovers(checkpoint, {piece.key for piece, _ in pieces.values()})
    store = WeightStore()
    for name, (piece, _) in pieces.items():
        read = partial(_as_float, checkpoint, piece)
        rows = partial(_rows_as_float, checkpoint, piece) if checkpoint.is_mapped else None
        store.add_computed(name, shapes[name], np.dtype(np.float32), read, rows)
    return store


class OwnWeights(Mapping[str, Quantized]):
    """The matrices that a checkpoint has quantized itself, by layer, each read when asked for."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        tied = {HEAD: EMBEDDING} if checkpoint.config.tied else {}
        names = [*checkpoint.weight_shapes(), *tied]
        found = {name: checkpoint.find(tied.get(name, name))[0] for name in names}
        self._pieces = {
            name.removesuffix(".weight"): piece
            for name, piece in found.items()
            if not piece.transposed and checkpoint.has_integers(piece.key)
        }

    def __getitem__(self, name: str) -> Quantized:
        piece = self._pieces[name]
        return piece.take_integers(self._checkpoint.read_integers(piece.key))

    def __iter__(self) -> Iterator[str]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)


def build_decoder(checkpoint: Checkpoint, decoding: Decoding | int) -> LanguageModel:
    """Return the decoder with the weights of a checkpoint, ready to be called.

    A number is the context of one that is plain otherwise.
    """
    decoding = Decoding(decoding) if isinstance(decoding, int) else decoding
    return _make_decoder(checkpoint.config, read_weights(checkpoint), decoding)


def read_weights(checkpoint: WeightSource) -> dict[str, Any]:
    """Return all weights of the model by their names, as tensors of PyTorch."""
    import torch

    store = open_weights(checkpoint)
    weights: dict[str, Any] = {}
    with progress("Reading weights", total=len(store)) as step, warnings.catch_warnings():
        # A mapped file cannot be written to, and nothing does.
        warnings.filterwarnings("ignore", message=".*not writable.*")
        for name in store:
            weights[name] = torch.as_tensor(store[name])
            step()
    return weights


def build_traced_decoder(config: DecoderConfig, decoding: Decoding) -> LanguageModel:
    """Return a decoder with one layer of each kind, whose weights have shapes and no memory."""
    short = replace(config, layers=tuple(dict.fromkeys(config.layers)))
    return _make_decoder(short, shapes_alone(_weight_shapes(short)), decoding)


def shapes_alone(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return tensors that say their shapes, and take no memory."""
    import torch

    return {name: torch.zeros(()).expand(shape) for name, shape in shapes.items()}


def make_parameters(weights: Mapping[str, Any]) -> dict[str, Any]:
    from torch.nn import Parameter

    return {name: Parameter(data, requires_grad=False) for name, data in weights.items()}


def _make_decoder(
    config: DecoderConfig, weights: Mapping[str, Any], decoding: Decoding
) -> LanguageModel:
    model = _empty_decoder(config)
    parameters = make_parameters(weights)
    if config.tied:
        parameters[HEAD] = parameters[EMBEDDING]
    model.load_state_dict(parameters, assign=True)
    model.allocate(decoding)
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
    shapes = repeat_shapes(model, len(config.layers))
    if config.tied:
        del shapes[HEAD]
    return shapes


def repeat_shapes(model: nn.Module, depth: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights of a model that has one layer of so many."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, tensor in model.state_dict().items():
        numbers = range(depth) if name.startswith(f"{LAYERS}.0.") else [0]
        for number in numbers:
            own = name.replace(f"{LAYERS}.0.", f"{LAYERS}.{number}.")
            shapes[own] = tuple(tensor.shape)
    return shapes


def _as_float(checkpoint: WeightSource, piece: Piece) -> Array:
    return np.ascontiguousarray(piece.take(_read_float(checkpoint, piece)), np.float32)


def _rows_as_float(checkpoint: WeightSource, piece: Piece, start: int, stop: int) -> Array:
    whole = _read_float(checkpoint, piece)
    first = 0 if piece.rows is None else piece.rows[0]
    rows = replace(piece, rows=(first + start, first + stop))
    return np.ascontiguousarray(rows.take(whole), np.float32)


def _read_float(checkpoint: WeightSource, piece: Piece) -> Array:
    array = checkpoint.read(piece.key)
    if str(array.dtype) not in FLOATS:
        raise UnsupportedError(
            f"the tensor '{piece.key}' is of {array.dtype}, which is no float",
            place=checkpoint.place,
        )
    return array


def _check_shapes(
    checkpoint: WeightSource,
    wanted: Mapping[str, tuple[int, ...]],
    pieces: Mapping[str, tuple[Piece, int | None]],
) -> None:
    shapes = checkpoint.shapes
    keys = dict.fromkeys(piece.key for piece, _ in pieces.values())
    if missing := [key for key in keys if key not in shapes]:
        raise Error(
            f"the checkpoint lacks {name_some(missing)}",
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


def _check_leftovers(checkpoint: WeightSource, used: set[str]) -> None:
    left = [k for k in checkpoint.shapes if k not in used and not checkpoint.is_ignored(k)]
    if left:
        raise UnsupportedError(
            f"the checkpoint has {name_some(left)}, which the model of "
            f"'{checkpoint.family}' does not have",
            place=checkpoint.place,
        )


def name_some(keys: list[str]) -> str:
    """Return the first of these names, and how many more there are."""
    shown = ", ".join(f"'{key}'" for key in keys[:SHOWN])
    return shown if len(keys) <= SHOWN else f"{shown} and {len(keys) - SHOWN} more tensors"


def _sizes(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
