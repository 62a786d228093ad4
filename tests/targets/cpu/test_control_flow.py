"""Branches and loops in compiled programs: buffers that they hand on, and threads that take them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed

cond: Callable[..., torch.Tensor] = cast(Any, torch).cond
while_loop: Callable[..., tuple[torch.Tensor, ...]] = cast(
    Any, import_module("torch._higher_order_ops.while_loop")
).while_loop


class Repeated(nn.Module):
    """A layer applied as often as an input says."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, times: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def more(i: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
            return i < times

        def step(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + 1, torch.relu(self.layer(x)) + 0.1

        i, x = while_loop(more, step, (torch.zeros((), dtype=torch.int64), x))
        return x, i


class Either(nn.Module):
    """One of two layers, as the input's sum decides."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 6), nn.Linear(4, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def one(x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.one(x))

        def other(x: torch.Tensor) -> torch.Tensor:
            return self.other(x) * 2

        return cond(x.sum() > 0, one, other, (x,))


@pytest.mark.parametrize("threads", [1, 3])
def test_loop(threads: int) -> None:
    manual_seed(0)
    model = Repeated().eval()
    x = torch.randn(3, 4)
    art = fewbit.compile(model, example_inputs=(x, torch.tensor(2)), name="net")
    for times in (0, 1, 5):
        expected, count = model(x, torch.tensor(times))
        found, counted = art.run(x.numpy(), np.array(times), threads=threads)
        np.testing.assert_allclose(found, expected.detach(), atol=1e-6)
        assert counted == count == times


@pytest.mark.parametrize("threads", [1, 3])
def test_branch(threads: int) -> None:
    manual_seed(0)
    model = Either().eval()
    art = fewbit.compile(model, example_inputs=(torch.randn(3, 4),), name="net")
    for x in (torch.ones(3, 4), -torch.ones(3, 4)):
        result = art(x.numpy(), threads=threads)
        np.testing.assert_allclose(result, model(x).detach(), atol=1e-6)
