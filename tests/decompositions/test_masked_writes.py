"""Writes to what a mask chooses: some elements, all, none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tests.decompositions.test_masks import check, inputs


def fill(x: Tensor) -> Tensor:
    y = x.clone()
    y[x > 0] = 5.0
    y[:, x[0] < 0] = -1.0
    return y


def write_back(x: Tensor) -> Tensor:
    y = x.clone()
    y[x > 0] = x[x > 0] * 2
    return y


def write_rows(x: Tensor) -> Tensor:
    y = x.clone()
    chosen = x[:, 0] > 0
    y[chosen] = torch.softmax(x[chosen], 1)
    return y


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "fill": fill,
    "write_back": write_back,
    "masked_scatter": lambda x: torch.zeros_like(x).masked_scatter(x > 0, x[x > 0] * 2),
    "masked_scatter_known": lambda x: x.masked_scatter(x > 0, torch.arange(12.0)),
    "index_add": lambda x: torch.zeros(4).index_add(0, torch.nonzero(x)[:, 1], x[x != 0]),
    "index_put": lambda x: torch.ones(3, 4).index_put(torch.nonzero(x, as_tuple=True), x[x != 0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fixed_sizes(name: str) -> None:
    check(FUNCTIONS[name], False, *inputs())


@pytest.mark.slow
def test_rows_beside_dynamic_sizes() -> None:
    check(write_rows, True, *inputs(), *inputs(5))
