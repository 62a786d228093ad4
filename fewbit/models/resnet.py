"""Residual networks (He et al., 2015): ResNet-18, and the ResNet-8 of MLPerf Tiny.

The two differ in their convolutions. MLPerf Tiny's have a bias before batch norm, and its shortcut
is a convolution without batch norm. Its strided convolutions pad on both sides here, where the
original, made with Keras, pads on one.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where shapes change."""

    def __init__(self, in_channels: int, channels: int, stride: int, *, tiny: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, padding=1, bias=tiny)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=tiny)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.shortcut = nn.Sequential()
        if stride != 1 or in_channels != channels:
            self.shortcut.append(nn.Conv2d(in_channels, channels, 1, stride, bias=tiny))
            if not tiny:
                self.shortcut.append(nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.shortcut(x))


class ResNet8(Schemed):
    def __init__(self, in_channels: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        self.layer1 = Block(16, 16, 1, tiny=True)
        self.layer2 = Block(16, 32, 2, tiny=True)
        self.layer3 = Block(32, 64, 2, tiny=True)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.avgpool(x).flatten(1))


class ResNet18(Schemed):
    """With the stem for ImageNet (7x7, then pooling) or for CIFAR (3x3 at full resolution)."""

    def __init__(
        self, classes: int = 1000, stem: Literal["imagenet", "cifar"] = "imagenet"
    ) -> None:
        super().__init__()
        large = stem == "imagenet"
        self.conv1 = (
            nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
            if large
            else nn.Conv2d(3, 64, 3, padding=1, bias=False)
        )
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, padding=1) if large else nn.Identity()
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))
