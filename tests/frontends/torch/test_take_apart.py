"""Ops that torch-mlir lacks, which torch defines in terms of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.errors import UnsupportedError

special: Any = torch.special


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def product_with_vector(x: Tensor) -> Tensor:
    return torch.addmv(x[0], x.T, x[:, 0])


def step_function(x: Tensor) -> Tensor:
    return torch.heaviside(x, x)


def norms_bounded(x: Tensor) -> Tensor:
    return torch.renorm(x, 1, 0, 1.0)


def updated_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[1].addmv_(x.T, x[:, 0])
    return y + special.xlog1py(x, x.abs())


@pytest.mark.parametrize(
    "function",
    [product_with_vector, step_function, norms_bounded, updated_in_place],
    ids=lambda function: function.__name__,
)
def test_ops_are_taken_apart(function: Callable[[Tensor], Tensor]) -> None:
    manual_seed(0)
    x = torch.randn(4, 3)
    (result,) = fewbit.import_model(Function(function), (x,)).run(x.numpy())
    np.testing.assert_allclose(result, function(x).numpy(), atol=1e-5)


def test_what_cannot_be_taken_apart_is_named_as_the_model_has_it() -> None:
    model = Function(lambda x: torch.addmv(x[0], x.T, special.i0e(x[:, 0])))
    with pytest.raises(UnsupportedError, match=r"special_i0e") as caught:
        fewbit.import_model(model, (torch.randn(4, 3),))
    assert "prims" not in str(caught.value)
