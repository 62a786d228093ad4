"""Outputs that bufferization computes in one memory, though each has its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import fewbit
from fewbit.frontends import import_model
from tests.frontends.torch.agreement import Function


def row_replaced(x: Tensor) -> tuple[Tensor, ...]:
    y = x + 1
    return y.slice_scatter(x[:1], 0, 1, 2), y


def rows_written_one_by_one(x: Tensor) -> tuple[Tensor, ...]:
    y = x + 1
    return y.index_copy(1, torch.tensor([0, 3, 3]), x[:, :3]), y[0]


def elements_written(x: Tensor) -> tuple[Tensor, ...]:
    y = x.sum(0)
    return y.scatter(0, torch.tensor([[2, 1, 2, 2, 6]]), x[0, :1]), y[..., None]


def rows_replaced_twice(x: Tensor) -> tuple[Tensor, ...]:
    y = x + 1
    z = y.slice_scatter(x[:1], 0, 1, 2)
    return z.slice_scatter(x[:1], 0, 0, 1), z.flatten(), y[..., None]


FUNCTIONS = [row_replaced, rows_written_one_by_one, elements_written, rows_replaced_twice]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_all_are_right(function: Callable[[Tensor], tuple[Tensor, ...]]) -> None:
    check(function, None)


def test_sizes_may_be_open() -> None:
    check(rows_replaced_twice, (({0: Dim("n", min=2)},),))


def check(function: Callable[[Tensor], tuple[Tensor, ...]], shapes: object) -> None:
    x = torch.randn(4, 8, 5)
    program = import_model(Function(function), (x,), dynamic_shapes=shapes)
    result = fewbit.compile(program)(x.numpy())
    for given, right in zip(result, function(x), strict=True):
        np.testing.assert_allclose(given, right.numpy(), rtol=1e-6, atol=1e-6)
