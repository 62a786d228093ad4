"""A multilayer perceptron: linear layers with ReLU between them, on the flattened input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from fewbit.models.schemed import Schemed


class MLP(Schemed):
    def __init__(
        self, in_features: int = 784, hidden: Sequence[int] = (64, 64, 64), classes: int = 10
    ) -> None:
        super().__init__()
        widths = [in_features, *hidden]
        self.layers = nn.ModuleList(nn.Linear(k, n) for k, n in pairwise(widths))
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)
