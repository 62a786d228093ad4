# pyright: basic
"""Elements by their order, distances, and writes by index, on random shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.frontends.torch.agreement import assert_agrees

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "kthvalue": lambda x: torch.kthvalue(x, 2, 0, True),
    "median": lambda x: (torch.median(x, 1), torch.median(x)),
    "cummax": lambda x: torch.cummax(x, 0),
    "logcumsumexp": lambda x: (torch.logcumsumexp(x * 100, 0), torch.logcumsumexp(x, 1)),
    "logcumsumexp_of_nothing": lambda x: torch.logcumsumexp(torch.where(x > 0, x, -torch.inf), 1),
    "cummin": lambda x: torch.cummin(x, 1),
    "hypot": lambda x: (torch.hypot(x, x * 3), torch.copysign(x, x - 0.2)),
    "cdist": lambda x: (torch.cdist(x, x[:2]), torch.cdist(x, x[:2], p=1.0)),
    "cdist_3": lambda x: (torch.cdist(x, x + 1, p=3.0), torch.cdist(x, x, p=torch.inf)),
}
WRITES: dict[str, Callable[..., Any]] = {
    "scatter_number": lambda x, i, s: (x.scatter(-1, i[:, :2], -torch.inf), x.scatter(0, i, 2)),
    "scatter_last": lambda x, i, s: (x.scatter(-1, i[:, :1], s), x.scatter_add(-1, i, s)),
    "scatter_largest_last": lambda x, i, s: x.scatter_reduce(-1, i, s, "amax"),
    "scatter_add": lambda x, i, s: x.scatter(0, i, s, reduce="add"),
    "scatter_multiply": lambda x, i, s: x.scatter(0, i, s, reduce="multiply"),
    "scatter_mean": lambda x, i, s: x.scatter_reduce(0, i, s, "mean"),
    "scatter_mean_alone": lambda x, i, s: x.scatter_reduce(0, i, s, "mean", include_self=False),
    "index_reduce": lambda x, i, s: x.index_reduce(1, i[0], s, "amax"),
    "truth": lambda x, i, s: (
        (x > 0).scatter_add(0, i, s > 0),
        (x > 0).index_put((i[:, 0],), (s > 0)[0], accumulate=True),
        (x > 0).scatter_reduce(0, i, s > 0, "amax"),
    ),
    "put": lambda x, i, s: (x.put(i[:, 0], s[0, :3], True), x.put(i[0, :1] - 2, s[0, :1])),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_pytorch(name: str) -> None:
    assert_agrees(FUNCTIONS[name], torch.randn(5, 4))


def test_of_equal_elements_and_nan() -> None:
    x = torch.tensor([[2.0, 1.0, 2.0, torch.nan, 3.0], [0.0, 1.0, 1.0, 0.0, 1.0]])
    assert_agrees(lambda x: (torch.cummax(x, 1), torch.median(x, 1).values), x)
    assert_agrees(lambda x: torch.mode(x, 1).values, torch.randint(0, 3, (3, 7)))


@pytest.mark.parametrize("right", [False, True])
def test_places_in_sorted_lines(right: bool) -> None:
    lines, x = torch.randint(0, 5, (2, 7)).sort(1).values, torch.randint(-1, 6, (2, 3))
    assert_agrees(lambda a, x: torch.searchsorted(a, x, right=right), lines, x)
    assert_agrees(lambda a, x: torch.searchsorted(a, x, right=right), lines[0], x)


@pytest.mark.parametrize("name", WRITES)
def test_writes_by_index(name: str) -> None:
    places = torch.randint(0, 3, (3, 4))
    assert_agrees(WRITES[name], torch.randn(3, 4), places, torch.randn(3, 4))
