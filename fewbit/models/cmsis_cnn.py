"""The CIFAR-10 network of CMSIS-NN (Lai, Suda, Chandra, 2018): three convolutions and a classifier.

Its 3x3 pooling windows of stride 2 halve the image: the last window is cut at the border
(`ceil_mode`).
"""

from __future__ import annotations

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


class CmsisCNN(Schemed):
    def __init__(self, in_channels: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 16, 5, padding=2)
        self.conv3 = nn.Conv2d(16, 32, 5, padding=2)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.fc = nn.Linear(32 * 4 * 4, classes)

    def forward(self, x: Tensor) -> Tensor:
        for conv in (self.conv1, self.conv2, self.conv3):
            x = self.pool(self.relu(conv(x)))
        return self.fc(x.flatten(1))
