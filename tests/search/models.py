"""Small models for searches: a trained one is made in a second or two."""

from __future__ import annotations

from functools import cache

from torch import Tensor, nn

from fewbit.base.typed_torch import fork_rng, manual_seed
from fewbit.data.split import Split
from fewbit.data.synthetic import synthetic_images
from fewbit.models.training import train


class Small(nn.Module):
    """Two convolutions, one with a batch norm, and two linear layers, one of them a function."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, stride=2)
        self.conv2 = nn.Conv2d(4, 8, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.hidden = nn.Linear(8 * 9, 16)
        self.fc = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.relu(self.conv1(x))
        x = nn.functional.relu(self.norm(self.conv2(x)))
        x = nn.functional.relu(nn.functional.linear(x.flatten(1), self.hidden.weight))
        return self.fc(x)


@cache
def images() -> Split:
    return synthetic_images((1, 16, 16), classes=5, n=600, seed=1)


@cache
def small() -> nn.Module:
    with fork_rng():
        manual_seed(0)
        model = Small()
    train(model, images().train_x, images().train_y, epochs=4, progress=None)
    return model
