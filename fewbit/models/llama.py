"""A small language model of the LLaMa family (Touvron et al., 2023).

RMSNorm, rotary position embedding, grouped-query attention, SwiGLU, no biases; causal. The modules
carry the names that LLaMa checkpoints have (`model.layers.0.self_attn.q_proj`). The angles of the
rotary embedding are a table up to the longest sequence, of which a call takes the beginning.

`LlamaDecode` is the same network one token at a time, with the same weights: a call is a step. Keys
and values of the tokens before are in buffers, which a step updates in place at its position.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.models.schemed import Schemed


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + half]) by the angle of its position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class SelfAttention(nn.Module):
    """Causal attention; several query heads share each key and value head."""

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int,
        head_width: int | None = None,
        *,
        bias: bool = False,
        output_bias: bool = False,
    ) -> None:
        super().__init__()
        self.head_width = head_width or width // heads
        self.sharing = heads // kv_heads
        self.q_proj = nn.Linear(width, heads * self.head_width, bias=bias)
        self.k_proj = nn.Linear(width, kv_heads * self.head_width, bias=bias)
        self.v_proj = nn.Linear(width, kv_heads * self.head_width, bias=bias)
        self.o_proj = nn.Linear(heads * self.head_width, width, bias=output_bias)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = self.heads(x, cos, sin)
        return self.join_heads(
            F.scaled_dot_product_attention(
                q, self.repeat_heads(k), self.repeat_heads(v), is_causal=True
            )
        )

    def heads(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, [batch, heads, sequence, head width]."""
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def repeat_heads(self, x: Tensor) -> Tensor:
        return x.unsqueeze(2).expand(-1, -1, self.sharing, -1, -1).flatten(1, 2)

    def join_heads(self, y: Tensor) -> Tensor:
        return self.o_proj(y.transpose(1, 2).flatten(2))


class CachedAttention(SelfAttention):
    """Attention of one token to itself and those before, whose keys and values are kept."""

    keys: Tensor
    values: Tensor

    def __init__(self, width: int, heads: int, kv_heads: int, longest: int) -> None:
        super().__init__(width, heads, kv_heads)
        for name in ("keys", "values"):
            kept = torch.zeros(1, kv_heads, longest, self.head_width)
            self.register_buffer(name, kept, persistent=False)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x: Tensor, cos: Tensor, sin: Tensor, position: Tensor, seen: Tensor
    ) -> Tensor:
        q, k, v = self.heads(x, cos, sin)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        return self.join_heads(
            F.scaled_dot_product_attention(
                q, self.repeat_heads(self.keys), self.repeat_heads(self.values), attn_mask=seen
            )
        )


class SwiGLU(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, attention: SelfAttention, hidden: int) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(width, eps=1e-5)
        self.self_attn = attention
        self.post_attention_layernorm = nn.RMSNorm(width, eps=1e-5)
        self.mlp = SwiGLU(width, hidden)

    def forward(self, x: Tensor, *place: Tensor) -> Tensor:
        """`place` is what attention has to know of the tokens' positions."""
        x = x + self.self_attn(self.input_layernorm(x), *place)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Tokens to the states from which the next tokens are read."""

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        vocabulary: int,
        width: int,
        depth: int,
        heads: int,
        kv_heads: int,
        hidden: int,
        longest: int,
    ) -> None:
        super().__init__()
        self.longest = longest
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            DecoderLayer(width, self.attention(width, heads, kv_heads), hidden)
            for _ in range(depth)
        )
        self.norm = nn.RMSNorm(width, eps=1e-5)
        half = width // heads // 2
        frequencies = 10_000.0 ** -(torch.arange(half) / half)
        angles = torch.outer(torch.arange(longest), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def attention(self, width: int, heads: int, kv_heads: int) -> SelfAttention:
        return SelfAttention(width, heads, kv_heads)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        return self.states(tokens, self.cos[:length], self.sin[:length])

    def states(self, tokens: Tensor, *place: Tensor) -> Tensor:
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, *place)
        return self.norm(x)


class CachedDecoder(Decoder):
    """One token, and its position."""

    def attention(self, width: int, heads: int, kv_heads: int) -> SelfAttention:
        return CachedAttention(width, heads, kv_heads, self.longest)

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, token: Tensor, position: Tensor
    ) -> Tensor:
        seen = torch.arange(self.longest) <= position
        return self.states(
            token, self.cos[position], self.sin[position], position, seen.unsqueeze(0)
        )


class Llama(Schemed):
    """[batch, sequence] tokens to [batch, sequence, vocabulary] logits.

    As it is, with 15 million parameters that a token is multiplied by.
    """

    decoder: type[Decoder] = Decoder

    def __init__(
        self,
        vocabulary: int = 32_000,
        width: int = 288,
        depth: int = 6,
        heads: int = 6,
        kv_heads: int = 6,
        hidden: int = 768,
        longest: int = 256,
    ) -> None:
        super().__init__()
        self.model = self.decoder(vocabulary, width, depth, heads, kv_heads, hidden, longest)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.lm_head(self.model(tokens))


class LlamaDecode(Llama):
    """A token, [1, 1], and its position, [1], to the logits of the next, [1, 1, vocabulary]."""

    decoder = CachedDecoder

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, token: Tensor, position: Tensor
    ) -> Tensor:
        return self.lm_head(self.model(token, position))


class LlamaTiny(Llama):
    """A LLaMa in kind only, for tests."""

    def __init__(
        self,
        vocabulary: int = 512,
        width: int = 64,
        depth: int = 2,
        heads: int = 4,
        kv_heads: int = 2,
        hidden: int = 176,
        longest: int = 256,
    ) -> None:
        super().__init__(vocabulary, width, depth, heads, kv_heads, hidden, longest)
