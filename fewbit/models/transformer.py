"""The encoder block that the transformers of the zoo share (Vaswani et al., 2017).

The projections are separate linear layers, so that each can have a width of its own. Normalization
comes before each half (`pre`, as in ViT) or after it (as in KWT).
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Attention(nn.Module):
    """Self-attention of several heads over [batch, tokens, width]."""

    def __init__(self, width: int, heads: int, *, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width, bias=bias)
        self.k = nn.Linear(width, width, bias=bias)
        self.v = nn.Linear(width, width, bias=bias)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            projection(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for projection in (self.q, self.k, self.v)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class EncoderBlock(nn.Module):
    def __init__(
        self, width: int, heads: int, hidden: int, *, pre: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        self.pre = pre
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, bias=bias)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        if self.pre:
            x = x + self.attn(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.mlp(x))
