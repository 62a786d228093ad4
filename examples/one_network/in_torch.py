# pyright: basic
"""The network in PyTorch, whose images are N x C x H x W."""

from __future__ import annotations

import torch
from torch import nn
from weights import EPS, Tree


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16, eps=EPS)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(4 * 4 * 32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm1(self.conv1(image)))
        x = nn.functional.max_pool2d(x, 2)
        x = torch.relu(self.conv2(x))
        x = nn.functional.max_pool2d(x, 2)
        return self.fc(x.permute(0, 2, 3, 1).flatten(1))  # As the others flatten.


def network(weights: Tree) -> nn.Module:
    """The network in torch, with kernels as out, in, height, width."""
    given = {
        "conv1.weight": weights["conv1"]["kernel"].transpose(3, 2, 0, 1),
        "norm1.weight": weights["norm1"]["scale"],
        "norm1.bias": weights["norm1"]["bias"],
        "norm1.running_mean": weights["norm1"]["mean"],
        "norm1.running_var": weights["norm1"]["var"],
        "conv2.weight": weights["conv2"]["kernel"].transpose(3, 2, 0, 1),
        "conv2.bias": weights["conv2"]["bias"],
        "fc.weight": weights["fc"]["kernel"].T,
        "fc.bias": weights["fc"]["bias"],
    }
    model = Network()
    state = {name: torch.tensor(data) for name, data in given.items()}
    model.load_state_dict(state, strict=False)  # It counts batches, too.
    return model.eval()
