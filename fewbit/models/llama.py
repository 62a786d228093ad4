"""A small language model of the LLaMa family (Touvron et al., 2023).

RMSNorm, rotary position embedding, grouped-query attention, SwiGLU, no biases; causal. The modules
carry the names that LLaMa checkpoints have (`model.layers.0.self_attn.q_proj`). The angles of the
rotary embedding are a table up to the longest sequence, of which a call takes the beginning.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.models.schemed import Schemed


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (x[i], x[i + half]) by the angle of its position."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class SelfAttention(nn.Module):
    """Causal attention; several query heads share each key and value head."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.sharing = heads // kv_heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_width, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q, k, v = (
            projection(x).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        k, v = self._shared(k), self._shared(v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).flatten(2))

    def _shared(self, x: Tensor) -> Tensor:
        return x.unsqueeze(2).expand(-1, -1, self.sharing, -1, -1).flatten(1, 2)


class SwiGLU(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int, hidden: int) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(width, eps=1e-5)
        self.self_attn = SelfAttention(width, heads, kv_heads)
        self.post_attention_layernorm = nn.RMSNorm(width, eps=1e-5)
        self.mlp = SwiGLU(width, hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
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
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads, kv_heads, hidden) for _ in range(depth)
        )
        self.norm = nn.RMSNorm(width, eps=1e-5)
        half = width // heads // 2
        frequencies = 10_000.0 ** -(torch.arange(half) / half)
        angles = torch.outer(torch.arange(longest), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class LlamaTiny(Schemed):
    """[batch, sequence] tokens to [batch, sequence, vocabulary] logits."""

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
        super().__init__()
        self.model = Decoder(vocabulary, width, depth, heads, kv_heads, hidden, longest)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.lm_head(self.model(tokens))
