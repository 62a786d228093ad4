# pyright: basic
"""Models that take, give and compute with bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.frontends.torch.agreement import assert_agrees

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "image": lambda x: x.permute(2, 0, 1)[:, ::2].float() / 255 - 0.5,
    "arithmetic": lambda x: (x + 200, x * 3, x // 7, 255 - x, ~x, x << 1),
    "comparison": lambda x: (x > 100, x.max(), x.sum(), x.argmax(0)),
    "movement": lambda x: (torch.cat([x, x + 1]), x.flip(0).reshape(-1), x.max(0)),
    "back": lambda x: ((x.float() * 0.7).to(torch.uint8), x.to(torch.int16) - 300),
    "lookup": lambda x: torch.arange(256.0)[x.long()],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_pytorch(name: str) -> None:
    assert_agrees(FUNCTIONS[name], torch.randint(0, 256, (6, 5, 3), dtype=torch.uint8))


def test_bytes_that_a_model_holds() -> None:
    table = torch.randint(0, 256, (4, 3), dtype=torch.uint8)
    assert_agrees(lambda x: table.float() + x, torch.randn(4, 3))
