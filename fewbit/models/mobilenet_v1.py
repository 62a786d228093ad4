"""MobileNetV1 at a quarter of its width, MLPerf Tiny's visual wake words (Howard et al., 2017).

It says whether a person is in an image of 96 x 96. Convolutions have a bias before batch norm, as
in the benchmark's model; where a stride of 2 leaves a choice, both sides are padded alike.
"""

from __future__ import annotations

from torch import Tensor, nn

from fewbit.models.schemed import Schemed

BLOCKS = (
    (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2),
    (128, 1), (128, 1), (128, 1), (128, 1), (128, 1), (256, 2), (256, 1),
)  # fmt: skip
"""Output channels and stride of each separable block."""


def _normalized(conv: nn.Conv2d) -> list[nn.Module]:
    return [conv, nn.BatchNorm2d(conv.out_channels), nn.ReLU()]


class MobileNetV1(Schemed):
    def __init__(self, classes: int = 2, first: int = 8) -> None:
        super().__init__()
        self.features = nn.Sequential(*_normalized(nn.Conv2d(3, first, 3, 2, padding=1)))
        channels = first
        for outputs, stride in BLOCKS:
            depthwise = nn.Conv2d(channels, channels, 3, stride, padding=1, groups=channels)
            self.features.extend(_normalized(depthwise))
            self.features.extend(_normalized(nn.Conv2d(channels, outputs, 1)))
            channels = outputs
        self.pool = nn.AvgPool2d(3)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.pool(self.features(x)).flatten(1))
