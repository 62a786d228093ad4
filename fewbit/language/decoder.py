"""The decoder of all families, as a torch module: tokens and a position to the next token's logits.

A call takes any number of tokens, so one program reads a prompt and decodes. Keys and values of all
tokens before are in buffers of a fixed length, the *context*, which a call updates in place
(`cache.py`). What a token attends to is a slice of these, or what is gathered of a window
(`places.py`), so that a step costs what is kept, not what there is room for. Query heads that share
keys are rows of one matrix: keys are read once for all of them, and not repeated. Unless all are
asked for, only the logits of the last token are computed: the head is the largest layer of small
models.

Modules have the names of LLaMa checkpoints, `model.layers.0.self_attn.q_proj`, in all families, so
recipes name layers alike. A module is built without memory for its weights, which are assigned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.language.cache import BLOCK, Shape, make_cache
from fewbit.language.config import (
    Activation,
    DecoderConfig,
    Decoding,
    EncoderConfig,
    LayerKind,
    Logits,
    Rope,
)
from fewbit.language.places import (
    Heads,
    Located,
    Sight,
    last_tokens,
    locate_one,
    locate_several,
    see,
)
from fewbit.language.torch_ops import rotate as rotate_blocks
from fewbit.models.llama import SelfAttention, rotate
from fewbit.quant.cache_scheme import CacheScheme


class Place(NamedTuple):
    """What a layer has to know of the tokens' positions."""

    cos: Tensor | None
    sin: Tensor | None
    sight: Sight


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

    def allocate(self, scheme: CacheScheme, sequences: int, blocks: int) -> None:
        self.rotated = scheme.hadamard
        shape = Shape(sequences, self.kv_heads, self.head_width, blocks)
        self.cache = make_cache(scheme, shape)
        for name, buffer in self.cache.allocate().items():
            self.register_buffer(name, buffer, persistent=False)

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
        q, k, v = (rotate_blocks(each, self.rotated) for each in (q, k, v))
        self.cache.write(self, k, v, place.sight.kept)
        y = self.attend(q.reshape(-1, place.sight.rows, self.head_width), place.sight)
        return self.join_heads(rotate_blocks(y, self.rotated).reshape(q.shape))

    def join_heads(self, y: Tensor) -> Tensor:
        joined = y.transpose(1, 2).flatten(2)
        return self.o_proj(joined if self.attn_sub_norm is None else self.attn_sub_norm(joined))

    def attend(self, q: Tensor, sight: Sight) -> Tensor:
        scores = self.cache.scores(self, q, sight.kept)
        if self.cap is None:
            scores = scores * self.scale
        else:
            scores = self.cap * torch.tanh(scores * (self.scale / self.cap))
        weights = scores.masked_fill(~sight.seen, float("-inf")).softmax(-1)
        return self.cache.weigh(self, weights, sight.kept)


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
        self.context, self.sequences, self.is_step = 0, 1, False
        self.embed_tokens = nn.Embedding(config.vocabulary, config.width)
        self.embed_positions = None
        if config.has_positions:
            self.embed_positions = nn.Embedding(config.longest, config.width)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in config.layers)
        self.norm = make_norm(config, config.width)
        self.ropes = list(dict.fromkeys(kind.rope for kind in config.layers if kind.rope))
        """The distinct tables of angles; a model has one or two."""

    def allocate(self, decoding: Decoding) -> None:
        """Make the tables of angles, and the caches of keys and values, of whole blocks.

        Several sequences have a block more, where tokens are kept that are none.
        """
        blocks = -(-decoding.context // BLOCK)
        self.context, self.sequences = blocks * BLOCK, decoding.sequences
        self.is_step = decoding.steps
        for number, rope in enumerate(self.ropes):
            cos, sin = rotation_table(rope, self.context)
            self.register_buffer(f"cos_{number}", cos, persistent=False)
            self.register_buffer(f"sin_{number}", sin, persistent=False)
        room = blocks + (self.sequences > 1)
        for layer in self.layers:
            attention = cast(DecoderLayer, layer).self_attn
            attention.allocate(decoding.cache, self.sequences, room)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        located = self.locate(tokens, position)
        x = self.embed_tokens(tokens if self.sequences == 1 else tokens.clamp_min(0))
        if self.config.embedding_scale is not None:
            x = x * self.config.embedding_scale
        if self.embed_positions is not None:
            x = x + self.embed_positions(located.positions)
        kinds = {kind: self.place(kind, located) for kind in dict.fromkeys(self.config.layers)}
        for layer, kind in zip(self.layers, self.config.layers, strict=True):
            x = layer(x, kinds[kind])
        return self.norm(x)

    def locate(self, tokens: Tensor, position: Tensor) -> Located:
        if self.sequences == 1:
            return locate_one(tokens, position, self.context, is_step=self.is_step)
        last = min(self.context, self.config.longest) - 1
        return locate_several(tokens, position, self.context, last, is_step=self.is_step)

    def place(self, kind: LayerKind, located: Located) -> Place:
        heads = Heads(self.config.kv_heads, self.config.heads // self.config.kv_heads)
        sight = see(located, self.context, kind.window, heads)
        if kind.rope is None:
            return Place(None, None, sight)
        number = self.ropes.index(kind.rope)
        tables = (self.get_buffer(f"{name}_{number}") for name in ("cos", "sin"))
        cos, sin = (table[located.positions] for table in tables)
        if self.sequences > 1:
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return Place(cos, sin, sight)


class LanguageModel(nn.Module):
    """Tokens and the position of the first to logits of the last, or of all.

    They are [sequences, n], [sequences] and [sequences, 1 or n, vocabulary].
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.gives: Logits = "last"

    def allocate(self, decoding: Decoding) -> None:
        self.gives = decoding.logits
        self.model.allocate(decoding)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        logits = self.lm_head(self.select(tokens, self.model(tokens, position)))
        cap = self.config.logit_cap
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def select(self, tokens: Tensor, states: Tensor) -> Tensor:
        """Return the states of tokens whose logits are wanted."""
        if self.gives == "all":
            return states
        if self.model.sequences == 1:
            return states[:, -1:]
        last = last_tokens(tokens).reshape(-1, 1, 1)
        return states.gather(1, last.expand(-1, 1, states.shape[-1]))
