"""TC-ResNet8 (Choi et al., 2019): keyword spotting by 1-D convolutions over time.

The 40 MFCCs of a frame are the channels, so that the first layer already sees all frequencies.
"""

from __future__ import annotations

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


class TemporalBlock(nn.Module):
    """Two convolutions over 9 frames beside a shortcut that halves the frames too."""

    def __init__(self, in_channels: int, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(in_channels, channels, 9, 2, padding=4, bias=False)
        self.bn1 = nn.BatchNorm1d(channels)
        self.conv2 = nn.Conv1d(channels, channels, 9, padding=4, bias=False)
        self.bn2 = nn.BatchNorm1d(channels)
        self.shortcut = nn.Conv1d(in_channels, channels, 1, 2, bias=False)
        self.shortcut_bn = nn.BatchNorm1d(channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y))
        return (y + self.shortcut_bn(self.shortcut(x)).relu()).relu()


class KWSConv1d(Schemed):
    def __init__(self, coefficients: int = 40, classes: int = 12) -> None:
        super().__init__()
        self.conv = nn.Conv1d(coefficients, 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm1d(16)
        self.blocks = nn.Sequential(
            TemporalBlock(16, 24), TemporalBlock(24, 32), TemporalBlock(32, 48)
        )
        self.pool = nn.AdaptiveAvgPool1d(1)
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(48, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.bn(self.conv(x)).relu())
        return self.fc(self.dropout(self.pool(x).flatten(1)))
