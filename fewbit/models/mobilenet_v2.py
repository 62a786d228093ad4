"""MobileNetV2 (Sandler et al., 2018): inverted residuals with linear bottlenecks.

A block widens its input with a 1x1 convolution, filters each channel by itself, and narrows the
result with a 1x1 convolution that no activation follows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.models.schemed import Schemed

STAGES = (
    # expansion, channels, blocks, stride of the first block
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class ConvNorm(nn.Sequential):
    """Convolution, batch norm and, but for the narrowing one, ReLU6."""

    def __init__(
        self,
        in_channels: int,
        channels: int,
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        *,
        activate: bool = True,
    ) -> None:
        padding = kernel // 2
        super().__init__(
            nn.Conv2d(in_channels, channels, kernel, stride, padding, groups=groups, bias=False),
            nn.BatchNorm2d(channels),
        )
        if activate:
            self.append(nn.ReLU6())


class InvertedResidual(nn.Module):
    def __init__(self, in_channels: int, channels: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = in_channels * expansion
        self.residual = stride == 1 and in_channels == channels
        self.layers = nn.Sequential()
        if expansion != 1:
            self.layers.append(ConvNorm(in_channels, wide))
        self.layers.append(ConvNorm(wide, wide, 3, stride, groups=wide))
        self.layers.append(ConvNorm(wide, channels, activate=False))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


def _scale_channels(channels: int, width: float) -> int:
    """The nearest multiple of 8 that is not more than a tenth below."""
    nearest = max(8, int(channels * width + 4) // 8 * 8)
    return nearest if nearest >= 0.9 * channels * width else nearest + 8


class MobileNetV2(Schemed):
    def __init__(self, classes: int = 1000, width: float = 1.0) -> None:
        super().__init__()
        channels = _scale_channels(32, width)
        last = _scale_channels(1280, max(width, 1.0))
        self.features = nn.Sequential(ConvNorm(3, channels, 3, 2))
        for expansion, base, blocks, first_stride in STAGES:
            for block in range(blocks):
                stride = 1 if block else first_stride
                after = _scale_channels(base, width)
                self.features.append(InvertedResidual(channels, after, stride, expansion))
                channels = after
        self.features.append(ConvNorm(channels, last))
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(last, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.mean(self.features(x), (2, 3))
        return self.classifier(self.dropout(x))
