"""A small network with static scales in which all that layers may give is given."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from fewbit.base.typed_torch import manual_seed
from fewbit.frontends import import_model
from fewbit.program.program import Program
from fewbit.quant.program_calibration import calibrate_program
from fewbit.quant.quantize import quantize


class Net(nn.Module):
    """Pooling that is read twice, a residual, a depthwise layer, a concatenation, pooled bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.one = nn.Conv2d(8, 20, 1)
        self.deep = nn.Conv2d(20, 20, 3, stride=2, padding=1, groups=20)
        self.two = nn.Conv2d(20, 8, 1)
        self.shortcut = nn.Conv2d(8, 8, 1, stride=2)
        self.left = nn.Conv2d(8, 4, 1)
        self.right = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.last = nn.Linear(12 * 3 * 3, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.first(x)), 3, 2, 1)
        y = nn.functional.relu6(self.deep(nn.functional.relu6(self.one(x))))
        x = self.two(y) + self.shortcut(x)
        x = torch.cat([torch.relu(self.left(x)), self.right(x)], 1)
        return self.last(nn.functional.max_pool2d(x, 2, 2).flatten(1))


def program(recipe: str, batch: int = 2, dynamic: bool = False) -> Program:
    manual_seed(0)
    example = (torch.randn(batch, 3, 24, 24),)
    shapes = {"x": {0: torch.export.Dim("batch")}} if dynamic else None
    floats = import_model(Net().eval(), example_inputs=example, dynamic_shapes=shapes)
    data = [[np.random.default_rng(0).standard_normal(example[0].shape).astype(np.float32)]]
    return quantize(floats, recipe, calibration=calibrate_program(floats, data, recipe))


def inputs(batch: int) -> np.ndarray:
    """Some beyond what calibration saw."""
    return 2 * np.random.default_rng(1).standard_normal((batch, 3, 24, 24)).astype(np.float32)
