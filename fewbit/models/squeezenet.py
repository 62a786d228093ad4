"""SqueezeNet 1.1 (Iandola et al., 2016): no linear layer, few parameters.

A fire module squeezes its input to few channels with a 1x1 convolution, and expands these with 1x1
and 3x3 convolutions side by side. The last convolution has one channel for each class. Without
batch norm, the weights begin at a scale that keeps the signal alive through 18 ReLUs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.models.schemed import Schemed


class Fire(nn.Module):
    def __init__(self, in_channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(in_channels, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.squeeze(x))
        return torch.cat([self.relu(self.expand1x1(x)), self.relu(self.expand3x3(x))], 1)


class SqueezeNet(Schemed):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 3, 2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
            Fire(64, 16, 64),
            Fire(128, 16, 64),
            nn.MaxPool2d(3, 2),
            Fire(128, 32, 128),
            Fire(256, 32, 128),
            nn.MaxPool2d(3, 2),
            Fire(256, 48, 192),
            Fire(384, 48, 192),
            Fire(384, 64, 256),
            Fire(512, 64, 256),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(0.5),
            nn.Conv2d(512, classes, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))
