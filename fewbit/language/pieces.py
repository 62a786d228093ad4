"""Where the weights of the decoder are in a checkpoint of each family.

Most have the names of LLaMa. Others fuse matrices, transpose them, or store a norm's weight less
one; a `Piece` says which tensor of the checkpoint a weight is, and how it is read from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fewbit.language.config import DecoderConfig
from fewbit.numerics import Quantized

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Piece:
    """A weight of the decoder, as a part of a tensor in a checkpoint."""

    key: str
    rows: tuple[int, int] | None = None
    """The rows that are the weight, of a fused matrix."""
    transposed: bool = False
    added: float = 0.0

    def shape_in_file(self, shape: tuple[int, ...], total: int | None) -> tuple[int, ...]:
        """Return the shape that the whole tensor has; `total` are the rows of a fused one."""
        if total is not None:
            shape = (total, *shape[1:])
        return shape[::-1] if self.transposed else shape

    def take(self, whole: Array) -> Array:
        array = whole.T if self.transposed else whole
        if self.rows is not None:
            array = array[slice(*self.rows)]
        return array + np.float32(self.added) if self.added else array

    def take_integers(self, whole: Quantized) -> Quantized:
        """Return the rows that are the weight, with their scales."""
        return whole if self.rows is None else whole.take_rows(slice(*self.rows))


def find_piece(family: str, config: DecoderConfig, name: str) -> tuple[Piece, int | None]:
    """Return where a weight is in Hugging Face's checkpoint, and the rows of a fused tensor."""
    if family == "gpt2":
        return _gpt2_piece(config, name)
    if family == "phi3":
        return _fused_piece(config, name)
    if family.startswith("gemma") and "norm" in name:
        return Piece(name, added=1.0), None
    return Piece(name), None


def _qkv_rows(config: DecoderConfig) -> dict[str, tuple[int, int]]:
    queries, keys = config.heads * config.head_width, config.kv_heads * config.head_width
    return {
        "q_proj": (0, queries),
        "k_proj": (queries, queries + keys),
        "v_proj": (queries + keys, queries + 2 * keys),
    }


def _fused_piece(config: DecoderConfig, name: str) -> tuple[Piece, int | None]:
    """Return a part of `qkv_proj` or `gate_up_proj`, as Phi-3 has them."""
    owner, _, kind = name.rpartition(".")
    path, _, layer = owner.rpartition(".")
    rows = _qkv_rows(config)
    if layer in rows:
        return Piece(f"{path}.qkv_proj.{kind}", rows[layer]), rows["v_proj"][1]
    halves = {"gate_proj": (0, config.hidden), "up_proj": (config.hidden, 2 * config.hidden)}
    if layer in halves:
        return Piece(f"{path}.gate_up_proj.{kind}", halves[layer]), 2 * config.hidden
    return Piece(name), None


GPT2_LAYERS = {
    "input_layernorm": "ln_1",
    "self_attn.o_proj": "attn.c_proj",
    "post_attention_layernorm": "ln_2",
    "mlp.up_proj": "mlp.c_fc",
    "mlp.down_proj": "mlp.c_proj",
}
GPT2_OTHERS = {
    "model.embed_tokens.weight": "wte.weight",
    "model.embed_positions.weight": "wpe.weight",
    "model.norm.weight": "ln_f.weight",
    "model.norm.bias": "ln_f.bias",
}


def _gpt2_piece(config: DecoderConfig, name: str) -> tuple[Piece, int | None]:
    """Return a weight of GPT-2, whose matrices are transposed and whose queries, keys and values
    are one."""
    if name in GPT2_OTHERS:
        return Piece(GPT2_OTHERS[name]), None
    if not name.startswith("model.layers."):
        return Piece(name), None
    _, _, number, rest = name.split(".", 3)
    layer, _, kind = rest.rpartition(".")
    rows, total = _qkv_rows(config).get(layer.rpartition(".")[2]), None
    theirs = GPT2_LAYERS.get(layer, "attn.c_attn")
    piece = Piece(f"h.{number}.{theirs}.{kind}")
    if rows is not None:
        piece, total = replace(piece, rows=rows), 3 * config.width
    is_matrix = kind == "weight" and "norm" not in layer
    return replace(piece, transposed=is_matrix), total
