"""The autoencoder of MLPerf Tiny's anomaly detection (DCASE 2020, task 2).

It reads five frames of 128 mel bands of a machine's sound, and gives them back: where it cannot,
the sound is not what it was trained on.
"""

from __future__ import annotations

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


class Autoencoder(Schemed):
    def __init__(self, features: int = 640, hidden: int = 128, code: int = 8) -> None:
        super().__init__()
        widths = (features, *[hidden] * 4, code, *[hidden] * 4)
        self.layers = nn.Sequential()
        for i in range(len(widths) - 1):
            linear = nn.Linear(widths[i], widths[i + 1])
            self.layers.extend([linear, nn.BatchNorm1d(widths[i + 1]), nn.ReLU()])
        self.layers.append(nn.Linear(hidden, features))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)
