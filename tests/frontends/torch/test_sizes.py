"""What a trace found out about sizes is asserted by the program."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

import fewbit
from fewbit.errors import InterpretError


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Part(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, 2:5] + 0


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_the_range_that_was_asked_for() -> None:
    shapes = {"x": {0: Dim("batch", min=3, max=8)}}
    program = fewbit.import_model(Twice(), (torch.randn(4, 6),), dynamic_shapes=shapes)
    assert program.run(ones(8, 6))[0].shape == (8, 6)
    for batch in (1, 9):
        with pytest.raises(InterpretError, match="size 0 of 'x'"):
            program.run(ones(batch, 6))


def test_a_size_that_can_be_anything_is_not_checked() -> None:
    shapes = {"x": {0: Dim("batch")}}
    program = fewbit.import_model(Twice(), (torch.randn(4, 6),), dynamic_shapes=shapes)
    assert "assert" not in program.text()
    assert program.run(ones(1, 6))[0].shape == (1, 6)


def test_a_size_that_the_trace_fixed_is_static() -> None:
    shapes = {"x": {0: Dim.AUTO, 1: Dim.AUTO}}
    program = fewbit.import_model(Part(), (torch.randn(3, 4, 6),), dynamic_shapes=shapes)
    assert program.signature.inputs[0].shape == (None, 4, 6)
