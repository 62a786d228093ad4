"""The decoder of all families, as a torch module: tokens and a position to the next token's logits.

A call takes any number of tokens, so one program reads a prompt and decodes. Keys and values of all
tokens before are in buffers of a fixed length, the *context*, which a call updates in place. What a
token attends to is a slice of these, or what is gathered of a window, so that a step costs what is
kept, not what there is room for. Keys are kept transposed, in blocks of 64 tokens: a matmul reads
them as they are, where others would be transposed in every step. Query heads that share keys are
rows of one matrix: keys are read once for all of them, and not repeated. Only the logits of the
last token are computed: the head is the largest layer of small models.

Modules have the names of LLaMa checkpoints, `model.layers.0.self_attn.q_proj`, in all families, so
recipes name layers alike. A module is built without memory for its weights, which are assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.base.typed_torch import sym_max, sym_min
from fewbit.language.config import (
    Activation,
    CacheType,
    DecoderConfig,
    EncoderConfig,
    LayerKind,
    Rope,
)
from fewbit.models.llama import SelfAttention, rotate


class Place(NamedTuple):
    """What a layer has to know of the tokens' positions.

    What is read of keys and values is a number of first ones, or in a window their places.
    """

    cos: Tensor | None
    sin: Tensor | None
    positions: Tensor
    """Where values of the tokens are kept."""
    blocks: Tensor
    """The blocks in which keys of the tokens are kept."""
    columns: Tensor
    """Where in their blocks."""
    seen: Tensor
    """The mask, [rows, tokens]: which of those that are read a token attends to."""
    rows: int
    """Queries that share keys."""
    read_blocks: int | Tensor
    read_tokens: int
    """How many tokens are in these blocks."""
    wanted: int | Tensor
    """Which of these are wanted."""
    values: int | Tensor
    """Which values are read."""


BLOCK = 64
"""Tokens of a block of keys: as many as the matmul of the widest processors takes at once."""

CACHE_TYPES: dict[CacheType, torch.dtype] = {"f32": torch.float32, "f16": torch.float16}

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "relu2": lambda x: F.relu(x) * F.relu(x),
}


def rotation_table(rope: Rope, length: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines for each position, [length, width / 2]."""
    half = rope.width // 2
    frequencies = 1.0 / rope.base ** (torch.arange(0, rope.width, 2).float() / rope.width)
    if rope.divisors:
        frequencies = frequencies / torch.tensor(rope.divisors[:half])
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return angles.cos(), angles.sin()


def make_norm(config: DecoderConfig | EncoderConfig, width: int) -> nn.Module:
    if config.norm == "layer":
        return nn.LayerNorm(width, eps=config.eps)
    return nn.RMSNorm(width, eps=config.eps)


class CachedAttention(SelfAttention):
    """Attention of tokens to themselves and to those before, whose keys and values are kept."""

    keys: Tensor
    values: Tensor

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(
            config.width,
            config.heads,
            config.kv_heads,
            config.head_width,
            bias=config.qkv_bias,
            output_bias=config.output_bias,
        )
        self.kv_heads = config.kv_heads
        self.scale = config.attention_scale or config.head_width**-0.5
        self.cap = config.attention_cap
        self.q_norm = self.k_norm = None
        if config.query_key_norm:
            self.q_norm = make_norm(config, config.head_width)
            self.k_norm = make_norm(config, config.head_width)
        self.attn_sub_norm = None
        if config.sub_norms:
            self.attn_sub_norm = make_norm(config, config.heads * config.head_width)

    def allocate(self, blocks: int, dtype: torch.dtype) -> None:
        keys = torch.zeros(1, self.kv_heads, blocks, self.head_width, BLOCK, dtype=dtype)
        values = torch.zeros(1, self.kv_heads, blocks * BLOCK, self.head_width, dtype=dtype)
        self.register_buffer("keys", keys, persistent=False)
        self.register_buffer("values", values, persistent=False)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Tensor, place: Place
    ) -> Tensor:
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.head_width))
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        if place.cos is not None and place.sin is not None:
            q, k = (rotate_first(each, place.cos, place.sin) for each in (q, k))
        kept = k.permute(2, 0, 1, 3).to(self.keys.dtype)
        self.keys[:, :, place.blocks, :, place.columns] = kept
        self.values.index_copy_(2, place.positions, v.to(self.values.dtype))
        y = self.attend(q.reshape(self.kv_heads, place.rows, self.head_width), place)
        return self.join_heads(y.reshape(q.shape))

    def join_heads(self, y: Tensor) -> Tensor:
        joined = y.transpose(1, 2).flatten(2)
        return self.o_proj(joined if self.attn_sub_norm is None else self.attn_sub_norm(joined))

    def attend(self, q: Tensor, place: Place) -> Tensor:
        keys = take(self.keys[0], 1, place.read_blocks)
        scores = torch.einsum("hrd,hbdk->hrbk", q, keys.float())
        scores = scores.reshape(self.kv_heads, place.rows, place.read_tokens)
        scores = take(scores, 2, place.wanted)
        if self.cap is None:
            scores = scores * self.scale
        else:
            scores = self.cap * torch.tanh(scores * (self.scale / self.cap))
        weights = scores.masked_fill(~place.seen, float("-inf")).softmax(-1)
        return torch.bmm(weights, take(self.values[0], 1, place.values).float())


def take(x: Tensor, axis: int, which: int | Tensor) -> Tensor:
    """Return the first so many along an axis, or those at the places that are given."""
    if isinstance(which, Tensor):
        return x.index_select(axis, which)
    return x.narrow(axis, 0, which)


def rotate_first(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate as many channels of a head as the table is for, and leave the others."""
    width = 2 * cos.shape[-1]
    if width == x.shape[-1]:
        return rotate(x, cos, sin)
    return torch.cat([rotate(x[..., :width], cos, sin), x[..., width:]], dim=-1)


class Mlp(nn.Module):
    def __init__(
        self, config: DecoderConfig | EncoderConfig, sub_norm: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.gate_proj = None
        if config.gated:
            self.gate_proj = nn.Linear(config.width, config.hidden, bias=config.mlp_bias)
        self.up_proj = nn.Linear(config.width, config.hidden, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.hidden, config.width, bias=config.mlp_bias)
        self.ffn_sub_norm = sub_norm

    def forward(self, x: Tensor) -> Tensor:
        if self.gate_proj is None:
            return self.down_proj(self.activation(self.up_proj(x)))
        hidden = self.activation(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(hidden if self.ffn_sub_norm is None else self.ffn_sub_norm(hidden))


class DecoderLayer(nn.Module):
    """Attention and MLP, each added to what it is given; norms before, and perhaps behind each."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.input_layernorm = make_norm(config, config.width)
        self.self_attn = CachedAttention(config)
        self.post_attention_layernorm = make_norm(config, config.width)
        self.mlp = Mlp(config, make_norm(config, config.hidden) if config.sub_norms else None)
        self.pre_feedforward_layernorm = self.post_feedforward_layernorm = None
        if config.output_norms:
            self.pre_feedforward_layernorm = make_norm(config, config.width)
            self.post_feedforward_layernorm = make_norm(config, config.width)

    def forward(self, x: Tensor, place: Place) -> Tensor:
        attended = self.self_attn(self.input_layernorm(x), place)
        if self.pre_feedforward_layernorm is None or self.post_feedforward_layernorm is None:
            x = x + attended
            return x + self.mlp(self.post_attention_layernorm(x))
        x = x + self.post_attention_layernorm(attended)
        return x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))


class Decoder(nn.Module):
    """Tokens to the states from which the next tokens are read."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.context = 0
        self.embed_tokens = nn.Embedding(config.vocabulary, config.width)
        self.embed_positions = None
        if config.has_positions:
            self.embed_positions = nn.Embedding(config.longest, config.width)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in config.layers)
        self.norm = make_norm(config, config.width)
        self.ropes = list(dict.fromkeys(kind.rope for kind in config.layers if kind.rope))
        """The distinct tables of angles; a model has one or two."""

    def allocate(self, context: int, cache: CacheType = "f32") -> None:
        """Make the tables of angles, and the caches of keys and values, of whole blocks."""
        blocks = -(-context // BLOCK)
        self.context = context = blocks * BLOCK
        for number, rope in enumerate(self.ropes):
            cos, sin = rotation_table(rope, context)
            self.register_buffer(f"cos_{number}", cos, persistent=False)
            self.register_buffer(f"sin_{number}", sin, persistent=False)
        for layer in self.layers:
            cast(DecoderLayer, layer).self_attn.allocate(blocks, CACHE_TYPES[cache])

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        length = tokens.shape[1]
        places = position + torch.arange(length)
        x = self.embed_tokens(tokens)
        if self.config.embedding_scale is not None:
            x = x * self.config.embedding_scale
        if self.embed_positions is not None:
            x = x + self.embed_positions(places)
        kinds = {
            kind: self.place(kind, places, end_of(position, length, self.context))
            for kind in dict.fromkeys(self.config.layers)
        }
        for layer, kind in zip(self.layers, self.config.layers, strict=True):
            x = layer(x, kinds[kind])
        return self.norm(x)

    def place(self, kind: LayerKind, positions: Tensor, end: int) -> Place:
        shared = self.config.heads // self.config.kv_heads
        blocks = sym_min((end + BLOCK - 1) // BLOCK, self.context // BLOCK)
        end = sym_min(end, blocks * BLOCK)  # No change, but a compiler then knows that it fits.
        kept = torch.arange(end)
        read = (blocks, blocks * BLOCK, end, end)
        seen = kept <= positions.unsqueeze(1)
        if kind.window is not None and kind.window < self.context:
            count = sym_min(end, kind.window - 1 + positions.shape[0])
            kept = end - count + torch.arange(count)
            first = (end - count) // BLOCK
            some = sym_min(blocks - first, blocks)  # Bounded, for a compiler that plans memory.
            read = (first + torch.arange(some), some * BLOCK, kept - first * BLOCK, kept)
            seen = (kept <= positions.unsqueeze(1)) & (kept > positions.unsqueeze(1) - kind.window)
        cos = sin = None
        if kind.rope is not None:
            number = self.ropes.index(kind.rope)
            cos = self.get_buffer(f"cos_{number}")[positions]
            sin = self.get_buffer(f"sin_{number}")[positions]
        return Place(
            cos,
            sin,
            positions,
            positions >> BLOCK.bit_length() - 1,
            positions & BLOCK - 1,
            seen.repeat(shared, 1),
            shared * positions.shape[0],
            *read,
        )


def end_of(position: Tensor, length: int, context: int) -> int:
    """Return the position behind the last token.

    It is cut to what there is, so that a compiler knows without data that slices fit.
    """
    first = sym_max(cast(int, position[0].item()), 0)
    return sym_min(first + length, context)


class LanguageModel(nn.Module):
    """Tokens, [1, n], and the position of the first, [1], to logits, [1, 1, vocabulary]."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        logits = self.lm_head(self.model(tokens, position)[:, -1:])
        cap = self.config.logit_cap
        return logits if cap is None else cap * torch.tanh(logits / cap)
