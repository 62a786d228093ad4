"""M5 (Dai et al., 2016): 1-D convolutions on the raw waveform, a second of audio at 8 kHz.

The first convolution is long enough to hear low tones. `width=128` is the published size, the
default a quarter of it.
"""

from __future__ import annotations

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


def _stage(in_channels: int, channels: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    return [
        nn.Conv1d(in_channels, channels, kernel, stride),
        nn.BatchNorm1d(channels),
        nn.ReLU(),
        nn.MaxPool1d(4),
    ]


class M5(Schemed):
    def __init__(self, classes: int = 10, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_stage(1, width, 80, stride=4),
            *_stage(width, width, 3),
            *_stage(width, 2 * width, 3),
            *_stage(2 * width, 4 * width, 3),
        )
        self.fc = nn.Linear(4 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.features(x).mean(2))
