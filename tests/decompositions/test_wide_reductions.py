"""Reductions of 16-bit floats agree with PyTorch's, which accumulate in f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fewbit
from fewbit.frontends import import_model

STEP = 2**-10
"""The relative step of f16; PyTorch adds in another order, and may lie on the other side of a tie."""


class Reduce(nn.Module):
    def __init__(self, reduce: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.reduce = reduce

    def forward(self, x: Tensor) -> Tensor:
        return self.reduce(x)


REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: (x / 8).sum(0),
    "sum_of_all": lambda x: (x / 64).sum(),
    "mean": lambda x: x.mean(0),
    "mean_of_all": lambda x: x.mean(),
    "mean_square": lambda x: (x * x).mean(0),
    "norm": lambda x: cast(Any, x).norm(dim=0),
    "norm_1": lambda x: cast(Any, x / 8).norm(p=1, dim=0),
    "layer_norm": lambda x: F.layer_norm(x.T, (x.shape[0],)),
    "layer_norm_weight": lambda x: F.layer_norm(x.T, (x.shape[0],), x.T[0], x.T[1]),
    "group_norm": lambda x: F.group_norm(x.T[None], 2),
    "instance_norm": lambda x: F.instance_norm(x.T[None]),
    "softmax": lambda x: x.softmax(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "var": lambda x: x.var(0),
    "normalize": lambda x: F.normalize(x, dim=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_agrees_with_pytorch(name: str) -> None:
    x = (torch.rand(9000, 4, generator=torch.Generator().manual_seed(0)) * 10).half()
    model = Reduce(REDUCTIONS[name])
    expected = model(x).numpy().astype(np.float64)
    assert np.isfinite(expected).all()
    program = import_model(model, (x,))
    for found in (program.run(x.numpy())[0], fewbit.compile(program)(x.numpy())):
        assert found.dtype == np.float16  # pyright: ignore
        largest = np.abs(expected).max()
        np.testing.assert_allclose(
            np.asarray(found, np.float64), expected, rtol=2 * STEP, atol=STEP * largest
        )


def test_running_sums_are_not_rounded_in_between() -> None:
    x = torch.full((5000,), 0.3).half()
    program = import_model(Reduce(lambda x: x.cumsum(0)), (x,))
    np.testing.assert_allclose(program.run(x.numpy())[0], x.cumsum(0).numpy(), rtol=STEP)


def test_wider_floats_and_integers_are_left_alone() -> None:
    for dtype in (torch.float32, torch.float64, torch.int32):
        x = torch.ones(3, 4, dtype=dtype)
        text = import_model(Reduce(lambda x: x.sum(0)), (x,)).text()
        assert "truncf" not in text
        assert "extf" not in text
