"""Cycles of a program's layers."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import fewbit
from fewbit.cost.cycles import Conv2d, Linear
from fewbit.cost.cycles.layers import program_cycles


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.head = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.depthwise(self.stem(x))).mean((2, 3)))


def test_shapes_and_widths_of_layers() -> None:
    inputs = np.random.default_rng(0).standard_normal((2, 3, 16, 16)).astype(np.float32)
    program = fewbit.import_model(Net(), (torch.randn(2, 3, 16, 16),))
    wide = program_cycles("small", fewbit.quantize(program, "w8a8"), [inputs])
    assert [layer.shape for layer in wide] == [
        Conv2d(3, 8, (8, 8), (3, 3), (2, 2), batch=2),
        Conv2d(8, 8, (8, 8), (3, 3), groups=8, batch=2),
        Linear(2, 10, 8),
    ]
    narrow = program_cycles("small", fewbit.quantize(program, "w2a2"), [inputs])
    for a, b in zip(wide, narrow, strict=True):
        assert a.name == b.name
        assert b.estimate.cycles < a.estimate.cycles


def test_layers_of_floats_have_no_cycles() -> None:
    inputs = np.zeros((1, 3, 16, 16), np.float32)
    program = fewbit.import_model(Net(), (torch.randn(1, 3, 16, 16),))
    assert program_cycles("high", program, [inputs]) == []
