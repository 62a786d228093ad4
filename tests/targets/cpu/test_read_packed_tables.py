"""A table that is also a layer's weight is stored once, and gives the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fewbit

TOKENS, WIDTH = 192, 64


class Tied(nn.Module):
    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, WIDTH)
        self.head = nn.Linear(WIDTH, tokens, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self.table(tokens)
        return rows, self.head(torch.tanh(rows))


def weight_bytes(recipe: str | None, tokens: int, folder: Path, **options: Any) -> int:
    """Compile a tied model, compare it with the interpreter, and return the bytes of weights."""
    torch.manual_seed(0)  # pyright: ignore[reportUnknownMemberType]
    given = torch.arange(tokens)[None]
    program = fewbit.import_model(Tied(tokens), (given,))
    if recipe is not None:
        program = fewbit.quantize(program, recipe)
    art = fewbit.compile(program, "cpu", folder, **options)
    expected, result = program.run(given.numpy()), art(given.numpy())
    np.testing.assert_array_equal(result[0], expected[0])
    np.testing.assert_allclose(result[1], expected[1], rtol=1e-5, atol=1e-5)
    return art.manifest.weight_bytes


@pytest.mark.parametrize(
    ("recipe", "size"),
    [
        (None, 4),
        ("w8a8", 1),
        ("w4a8", 0.5),
        ("w4a8g32-signed-f16", 0.625),
        ("w2a8g32-offset-f16", 0.5),
        ("w1a8", 0.125),
        ("w1.58a8", 0.25),
    ],
)
@pytest.mark.parametrize("tokens", [TOKENS, TOKENS + 5])
@pytest.mark.parametrize("variants", ["x86-64-v3", None])
def test_the_table_is_stored_once(
    recipe: str | None, size: float, tokens: int, variants: str | None, tmp_path: Path
) -> None:
    used = weight_bytes(recipe, tokens, tmp_path / "net", cpu_variants=variants)
    assert used < 1.7 * size * tokens * WIDTH + 16 * tokens


def test_planes_of_bits_are_stored_twice(tmp_path: Path) -> None:
    assert weight_bytes("w3a8", TOKENS, tmp_path / "net") > TOKENS * WIDTH * 3 / 8 * 2
