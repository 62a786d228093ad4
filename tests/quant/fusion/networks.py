"""Small networks in the shapes that people write them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fewbit.base.typed_torch import norm


def settled(model: Any, seed: int = 0) -> Any:
    """In eval mode, with norms whose parameters and statistics are anything but 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) and module.running_mean is not None:
            size = module.running_mean.shape
            module.running_mean.copy_(torch.randn(size, generator=generator))
            assert module.running_var is not None
            module.running_var.copy_(torch.rand(size, generator=generator) * 3 + 0.1)
        if isinstance(
            module, nn.BatchNorm1d | nn.BatchNorm2d | nn.LayerNorm | nn.RMSNorm | OwnRMSNorm
        ):
            for parameter in module.parameters():
                drawn = torch.randn(parameter.shape, generator=generator)
                parameter.data.copy_(drawn + (1 if parameter is module.weight else 0))
    return model.eval()


def relative_error(got: Tensor, expected: Tensor) -> float:
    got, expected = got.detach().double(), expected.detach().double()
    return norm(got - expected) / norm(expected)


class TopLevel(nn.Module):
    """Attributes of the root, registered in an order that says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.bn2 = nn.BatchNorm2d(6)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv1 = nn.Conv2d(3, 4, 3, bias=False)
        self.conv2 = nn.Conv2d(4, 6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.bn2(self.conv2(x)).relu()


class Residual(nn.Module):
    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential(nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        y += self.shortcut(x)
        return functional.relu(y, inplace=True)


class InvertedResidual(nn.Module):
    def __init__(self, channels: int = 4, wide: int = 12) -> None:
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True)
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(inplace=True),
        )
        self.narrow = nn.Sequential(
            nn.Conv2d(wide, channels, 1, groups=2, bias=False), nn.BatchNorm2d(channels)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(self.depthwise(self.expand(x)))


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = TopLevel()
        self.first = nn.ModuleDict({"body": Residual(6)})
        self.blocks = nn.ModuleList([InvertedResidual(6)])
        self.head = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, affine=False))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = self.blocks[0](self.first["body"](x))
        return self.head(x.mean((2, 3)))


class BatchNormForTwo(nn.Module):
    """One batch norm, called after each of two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Conv2d(3, 4, 3)
        self.right = nn.Conv2d(3, 4, 3, bias=False)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.left(x)) * self.bn(self.right(x))


class SharedConv(nn.Module):
    """One convolution before two batch norms."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn1 = nn.BatchNorm2d(4)
        self.bn2 = nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn1(self.conv(x)) + self.bn2(self.conv(x.flip(-1)))


class TwoUsers(nn.Module):
    """The convolution's output goes past the batch norm, too, in a way that a test chooses."""

    def __init__(self, use: Callable[[Any, Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.use = use

    def forward(self, x: Tensor) -> Any:
        y = self.conv(x)
        return self.use(self, y, self.bn(y))


class OwnRMSNorm(nn.Module):
    """As in LLaMa; `offset` 1 is Gemma's, whose output is not proportional to its weight."""

    def __init__(self, size: int, offset: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.offset = offset

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * (self.offset + self.weight)


class ViTBlock(nn.Module):
    """Pre-norm: the residuals take what goes into the norms."""

    def __init__(self, size: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, size = x.shape
        split = self.qkv(self.norm1(x)).reshape(batch, tokens, 3, self.heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + self.proj(y.reshape(batch, tokens, size))
        return x + self.mlp(self.norm2(x))


class LlamaBlock(nn.Module):
    def __init__(self, size: int = 16, norm: Any = nn.RMSNorm) -> None:
        super().__init__()
        self.attn_norm, self.ffn_norm = norm(size), norm(size)
        self.q, self.k, self.v, self.o = (nn.Linear(size, size, bias=False) for _ in range(4))
        self.w1, self.w3 = (nn.Linear(size, 2 * size, bias=False) for _ in range(2))
        self.w2 = nn.Linear(2 * size, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.attn_norm(x)
        q, k, v = self.q(h), self.k(h), self.v(h)
        x = x + self.o(functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        h = self.ffn_norm(x)
        return x + self.w2(functional.silu(self.w1(h)) * self.w3(h))


class Llama(nn.Module):
    """Tokens in, logits out; the output layer may be tied to the embedding."""

    def __init__(self, size: int = 16, norm: Any = nn.RMSNorm, tied: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, size)
        self.layers = nn.ModuleList(LlamaBlock(size, norm) for _ in range(2))
        self.norm = norm(size)
        self.output = nn.Linear(size, 32, bias=False)
        if tied:
            self.output.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))
