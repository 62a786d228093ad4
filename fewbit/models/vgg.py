"""A small VGG (Simonyan, Zisserman, 2014) for 32x32 images.

Stages of two 3x3 convolutions, each followed by batch norm and ReLU, then pooling by 2; two linear
layers classify.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


def _stage(in_channels: int, channels: int) -> list[nn.Module]:
    return [
        nn.Conv2d(in_channels, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]


class VGG(Schemed):
    def __init__(
        self,
        in_channels: int = 3,
        widths: Sequence[int] = (32, 64, 128),
        classes: int = 10,
        image_size: int = 32,
    ) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        for before, after in zip([in_channels, *widths], widths, strict=False):
            stages += _stage(before, after)
        self.features = nn.Sequential(*stages)
        side = image_size >> len(widths)
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(widths[-1] * side * side, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x))
