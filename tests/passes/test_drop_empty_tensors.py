"""Models with slices of no elements, on targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fewbit
from fewbit.frontends import import_model

CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "behind": lambda x: torch.cat([x[..., :8].sin(), x[..., 8:]], -1),
    "in_front": lambda x: torch.cat([x[..., 8:], x[..., :8].sin()], -1),
    "computed": lambda x: torch.cat([x, (x[..., 8:] * 2 + 1).relu()], -1),
    "alone": lambda x: torch.cat([x[..., 8:], x[..., 8:]], -1),
    "stacked": lambda x: torch.stack([x[..., 8:], x[..., 8:]]),
    "padded": lambda x: torch.nn.functional.pad(x[..., 7:], (1, -1, 0, 2), value=2.0),
    "summed": lambda x: x[..., 8:].sum(-1),
    "multiplied": lambda x: x[..., 8:] @ x[..., 8:].transpose(1, 2),
}


class Sliced(nn.Module):
    def __init__(self, compute: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, x: Tensor) -> Tensor:
        return self.compute(x)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_for_this_processor(name: str, dynamic: bool) -> None:
    x = torch.randn(2, 4, 8)
    model = Sliced(CASES[name])
    shapes = {"x": {0: torch.export.Dim("n")}} if dynamic else None
    compiled = fewbit.compile(import_model(model, (x,), shapes))
    np.testing.assert_allclose(compiled(x.numpy()), model(x).numpy(), rtol=1e-5, atol=1e-6)


def test_compiled_for_iree() -> None:
    x = torch.randn(1, 4, 8)
    model = Sliced(CASES["behind"])
    compiled = fewbit.compile(import_model(model, (x,)), "iree-cpu")
    np.testing.assert_allclose(compiled(x.numpy()), model(x).numpy(), rtol=1e-5, atol=1e-6)
