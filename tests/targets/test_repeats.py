"""Blocks of a network that are alike but for their weights, on hardware."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


@pytest.mark.parametrize("target", ["vexii", "gemmini"])
def test_blocks_that_repeat_have_weights_of_their_own(target: str) -> None:
    manual_seed(0)
    net, x = torch.nn.Sequential(*(Block(48) for _ in range(5))), torch.randn(3, 48)
    program = fewbit.quantize(fewbit.import_model(net, example_inputs=(x,)), "w8a8")
    found, wanted = fewbit.compile(program, target).run(x.numpy()), program.run(x.numpy())
    assert np.array_equal(found[0], wanted[0])
