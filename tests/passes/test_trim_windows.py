"""Windows that do not move and leave some of their input unread, on targets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import fewbit
from fewbit.frontends import import_model

CASES = {
    "average": (nn.AvgPool2d(3, 2), (1, 3, 4, 4)),
    "average_padded": (nn.AvgPool1d(3, 2, 1), (1, 3, 2)),
    "average_3d": (nn.AvgPool3d(3, 2), (1, 3, 4, 4, 4)),
    "largest": (nn.MaxPool2d(3, 2), (1, 3, 4, 4)),
    "largest_3d": (nn.MaxPool3d(3, 2), (1, 3, 4, 4, 4)),
    "conv_2d": (nn.Conv2d(3, 4, 3, stride=2), (1, 3, 4, 4)),
    "conv_3d": (nn.Conv3d(3, 4, 3, stride=2, padding=1), (1, 3, 2, 8, 8)),
}


@pytest.mark.parametrize("target", ["cpu", "iree-cpu"])
@pytest.mark.parametrize("name", CASES)
def test_compiles_and_agrees(name: str, target: str) -> None:
    model, shape = CASES[name]
    x = torch.rand(shape)
    program = import_model(model.eval(), (x,))
    result = fewbit.compile(program, target)(x.numpy())
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    kernel, stride, padding = (data.draw(st.integers(*r)) for r in ((1, 3), (1, 4), (0, 1)))
    padding = min(padding, kernel // 2)
    sizes = [data.draw(st.integers(max(kernel - 2 * padding, 1), 7)) for _ in range(2)]
    layer = data.draw(st.sampled_from(["pool", "conv", "depthwise"]))
    if layer == "pool":
        model: nn.Module = nn.AvgPool2d(kernel, stride, padding)
    else:
        model = nn.Conv2d(4, 4, kernel, stride, padding, groups=1 if layer == "conv" else 4)
    x = torch.rand(data.draw(st.integers(1, 2)), 4, *sizes)
    program = import_model(model.eval(), (x,))
    result = fewbit.compile(program)(x.numpy())
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
