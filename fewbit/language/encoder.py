"""The encoder of all families, as a torch module: a text's tokens to states, or to one vector.

A call takes the tokens of one text, of any length and without padding, so there is no mask. Modules
have the names of the decoder's, `model.layers.0.self_attn.q_proj`, so recipes name layers alike.
Which bucket a relative position is in is a table, made when the module is: its logarithms, rounded
to integers, are then PyTorch's own.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.language.config import Buckets, EncoderConfig
from fewbit.language.decoder import Mlp, make_norm
from fewbit.models.llama import SelfAttention


def bucket_table(buckets: Buckets, length: int) -> Tensor:
    """Return the buckets of the relative positions from `1 - length` to `length - 1`.

    One half of the buckets is for tokens behind; of each half, one half is for one position each,
    and the other grows by the logarithm.
    """
    half = buckets.count // 2
    exact = half // 2
    relative = torch.arange(1 - length, length)
    distance = relative.abs()
    grown = torch.log(distance.float() / exact) / math.log(buckets.distance / exact)
    far = (exact + (grown * (half - exact)).clamp(min=0).long()).clamp(max=half - 1)
    return torch.where(distance < exact, distance, far) + half * (relative > 0)


class EncoderAttention(SelfAttention):
    """Attention of all tokens to all, with a bias for each two positions if there is one."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(
            config.width,
            config.heads,
            config.heads,
            config.head_width,
            bias=config.qkv_bias,
            output_bias=config.output_bias,
        )
        self.scale = config.attention_scale or config.head_width**-0.5

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Tensor, bias: Tensor | None
    ) -> Tensor:
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scale)
        return self.join_heads(y)


class EncoderLayer(nn.Module):
    """Attention and MLP, each added to what it is given; a norm before or behind each."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.is_pre_norm = config.is_pre_norm
        self.self_attn = EncoderAttention(config)
        self.attention_norm = make_norm(config, config.width)
        self.mlp = Mlp(config)
        self.mlp_norm = make_norm(config, config.width)

    def forward(self, x: Tensor, bias: Tensor | None) -> Tensor:
        if self.is_pre_norm:
            x = x + self.self_attn(self.attention_norm(x), bias)
            return x + self.mlp(self.mlp_norm(x))
        x = self.attention_norm(self.self_attn(x, bias) + x)
        return self.mlp_norm(self.mlp(x) + x)


class Encoder(nn.Module):
    """Tokens to the states of the last layer."""

    buckets: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.context = 0
        self.embed_tokens = nn.Embedding(config.vocabulary, config.width)
        self.embed_positions = self.token_type = self.position_bias = None
        if config.longest is not None:
            self.embed_positions = nn.Embedding(config.longest, config.width)
        if config.token_types:
            self.token_type = nn.Parameter(torch.empty(1, config.width))
        if config.buckets is not None:
            self.position_bias = nn.Embedding(config.buckets.count, config.heads)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.depth))
        self.norm = make_norm(config, config.width)
        """Behind the embeddings; where norms are before layers, behind these."""

    def allocate(self, context: int) -> None:
        """Make the table of buckets for texts of up to so many tokens."""
        self.context = context
        if self.config.buckets is not None:
            table = bucket_table(self.config.buckets, context)
            self.register_buffer("buckets", table, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])
        x = self.embed_tokens(tokens)
        if self.embed_positions is not None:
            x = x + self.embed_positions(places)
        if self.token_type is not None:
            x = x + self.token_type
        bias = self.bias(places)
        x = x if self.config.is_pre_norm else self.norm(x)
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x) if self.config.is_pre_norm else x

    def bias(self, places: Tensor) -> Tensor | None:
        """Return what is added to scores, [1, heads, n, n]."""
        if self.position_bias is None:
            return None
        relative = places.unsqueeze(0) - places.unsqueeze(1) + (self.context - 1)
        return self.position_bias(self.buckets[relative]).permute(2, 0, 1).unsqueeze(0)


class TextEncoder(nn.Module):
    """Tokens, [1, n], to states, [1, n, width], or to one vector of the text, [1, width]."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Encoder(config)

    def forward(self, tokens: Tensor) -> Tensor:
        states = cast(Tensor, self.model(tokens))
        if self.config.pooling is None:
            return states
        pooled = self.pool(states)
        return F.normalize(pooled, dim=-1) if self.config.normalize else pooled

    def pool(self, states: Tensor) -> Tensor:
        if self.config.pooling == "cls":
            return states[:, 0]
        return states.amax(1) if self.config.pooling == "max" else states.mean(1)
