"""Sorting and the largest elements, along any dimension: eager, interpreted and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.frontends import import_model


class Apply(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def check(function: Callable[[Tensor], Any], x: Tensor) -> None:
    """Interpreted and compiled, all results are what PyTorch computes."""
    expected = function(x)
    expected = [expected] if isinstance(expected, Tensor) else list(expected)
    program = import_model(Apply(function), (x,))
    compiled = fewbit.compile(program)
    for results in (program.run(x.numpy()), compiled.run(x.numpy())):
        for result, wanted in zip(results, expected, strict=True):
            assert result.dtype == wanted.numpy().dtype
            np.testing.assert_array_equal(result, wanted.numpy())


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_sort(dim: int, descending: bool, dtype: type) -> None:
    rng = np.random.default_rng(dim + 5)
    x = from_numpy((rng.standard_normal(rng.integers(2, 12, 3)) * 3).astype(dtype))
    check(lambda x: x.sort(dim=dim, descending=descending, stable=True), x)


@pytest.mark.parametrize("descending", [False, True])
def test_truth_values(descending: bool) -> None:
    x = torch.rand(4, 7, generator=torch.Generator().manual_seed(0)) > 0.5
    check(lambda x: x.sort(dim=0, descending=descending, stable=True), x)
    check(lambda x: x.sort(descending=descending)[0], x)


def test_a_long_one_with_ties() -> None:
    x = torch.randint(0, 50, (1000,), generator=torch.Generator().manual_seed(0)).float()
    check(lambda x: x.sort(stable=True), x)
    check(lambda x: x.argsort(stable=True, descending=True), x)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
def test_topk(largest: bool, dim: int) -> None:
    x = torch.randperm(8 * 9, generator=torch.Generator().manual_seed(0)).reshape(8, 9).float()
    check(lambda x: x.topk(3, dim, largest), x)


def test_topk_in_any_order() -> None:
    x = torch.randperm(8 * 9, generator=torch.Generator().manual_seed(0)).reshape(8, 9).float()
    check(lambda x: x.topk(3, sorted=False)[0].sum(-1), x)
    check(lambda x: torch.zeros_like(x).scatter(1, x.topk(3, sorted=False)[1], 1), x)


@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_the_largest(descending: bool) -> None:
    x = torch.tensor([3, torch.nan, -torch.inf, 1, torch.nan, torch.inf, -2, 0, 0.5])
    check(lambda x: x.sort(descending=descending, stable=True), x)
    check(lambda x: x.topk(4, largest=descending)[0], x)


def test_of_a_dynamic_length() -> None:
    model = Apply(lambda x: x.sort(dim=1, stable=True))
    program = import_model(model, (torch.ones(2, 7),), {"x": {1: Dim("n")}})
    compiled = fewbit.compile(program)
    for size in (1, 2, 33):
        x = torch.randint(-4, 4, (2, size)).float()
        for given, wanted in zip(compiled(x.numpy()), model(x), strict=True):
            np.testing.assert_array_equal(given, wanted.numpy())
