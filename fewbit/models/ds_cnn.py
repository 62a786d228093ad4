"""DS-CNN, the keyword spotter of MLPerf Tiny (Zhang et al., 2017).

Depthwise separable convolutions over an image of 49 frames of 10 MFCCs. They have a bias before
batch norm, as in the original. The first pads both sides alike, where the original, made with
Keras, pads one side by a frame less.
"""

from __future__ import annotations

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


def _separable(channels: int) -> list[nn.Module]:
    return [
        nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
    ]


class DSCNN(Schemed):
    def __init__(self, classes: int = 12, channels: int = 64, blocks: int = 4) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, (10, 4), 2, padding=(5, 1)),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Dropout(0.2),
        )
        for _ in range(blocks):
            self.features.extend(_separable(channels))
        self.dropout = nn.Dropout(0.4)
        self.pool = nn.AvgPool2d((25, 5))
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.dropout(self.features(x)))
        return self.fc(x.flatten(1))
