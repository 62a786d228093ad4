# pyright: basic
"""NaN and infinities go through functions as in PyTorch, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fewbit

NAN, INF = float("nan"), float("inf")
FUNCTIONS = {
    "clamp": lambda x: x.clamp(-1, 1),
    "clamp_min": lambda x: x.clamp(min=0.0),
    "clamp_max": lambda x: x.clamp(max=0.0),
    "clamp_swapped": lambda x: x.clamp(2, 1),
    "clamp_tensors": lambda x: torch.clamp(x, torch.zeros(5), torch.ones(5)),
    "hardtanh": F.hardtanh,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "relu": F.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "silu": lambda x: F.silu(x[:4]),
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "hardshrink": F.hardshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 2.0),
    "largest": lambda x: (x.amax(0, keepdim=True), x.max()),
    "max_pool": lambda x: F.max_pool1d(x[None, None], 2, 1),
    "softmax": lambda x: (torch.softmax(x, 0), torch.logsumexp(x[2:4], 0)),
    "round": lambda x: (torch.round(x), torch.trunc(x), torch.sign(x)),
    "roots": lambda x: (torch.sqrt(x), torch.rsqrt(x), torch.log(x)),
    "fmod": lambda x: torch.fmod(x, 0.75),
    "nan_to_num": torch.nan_to_num,
    "equals_itself": lambda x: (x == x, x.eq(x).sum(), torch.where(x == x, x, 0.0)),
    "is_finite": torch.isfinite,
    "places": lambda x: (x.argmax(), x.argmin(), x[2:].argmax(), x.max(0)[1], x.min(0)[1]),
    "first_places": lambda x: (torch.stack([x, -x]) * x[1]).argmax(1),
    "angle": lambda x: (torch.angle(x), torch.signbit(-(x[2:] - 2))),
    "median": lambda x: (x.nanmedian(), x.median()),
}


class Function(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor):
        return FUNCTIONS[self.name](x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_pytorch(name: str) -> None:
    x = torch.tensor([0.3, NAN, 2.0, -5.0, INF])
    expected = Function(name)(x)
    program = fewbit.import_model(Function(name), (x,))
    for found in (program.run(x.numpy()), fewbit.compile(program, name="net").run(x.numpy())):
        wanted = expected if isinstance(expected, tuple) else (expected,)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), 1e-5, 1e-6)


def test_nan_wherever_it_is_in_a_window() -> None:
    x = np.random.default_rng(0).standard_normal((1, 35, 6, 6)).astype(np.float32)
    x[0, ::3, 2, 3] = NAN
    pool = nn.MaxPool2d(3, 2)
    program = fewbit.import_model(pool, (torch.from_numpy(x),))
    expected = pool(torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(fewbit.compile(program, name="net").run(x)[0], expected)
