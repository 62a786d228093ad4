"""Attention and layer norms, on which data tiling of IREE 3.13 needs flags of ours."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import fewbit
from fewbit.base.typed_torch import manual_seed


class Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(192, 192)
        self.norm = nn.LayerNorm(192)
        self.second = nn.Linear(192, 192)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x + self.first(x)
        return x, self.second(self.norm(x))


def test_attention_of_any_batch() -> None:
    manual_seed(0)
    inputs = tuple(torch.randn(3, 2, 17, 8) for _ in range(3))
    batch = torch.export.Dim("batch", min=1, max=64)
    sizes = tuple({0: batch} for _ in inputs)
    exported = torch.export.export(Attention(), inputs, dynamic_shapes=sizes)
    art = fewbit.compile(fewbit.import_model(exported), "iree-cpu", name="attention")
    for count in (1, 3):
        some = [x[:count] for x in inputs]
        result = art(*(x.numpy() for x in some))
        np.testing.assert_allclose(result, Attention()(*some).numpy(), atol=1e-5)


def test_odd_rows_are_normed_in_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    manual_seed(0)
    block, x = Block().eval(), torch.randn(1, 65, 192)
    art = fewbit.compile(fewbit.import_model(block, (x,)), "iree-cpu", name="block")
    assert "without data tiling" not in capsys.readouterr().err
    with torch.no_grad():
        expected = block(x)
    results = (art.run(x.numpy()), art.run(x.numpy(), threads=2), expected)
    for alone, shared, right in zip(*results, strict=True):
        np.testing.assert_allclose(alone, right.numpy(), atol=1e-5)
        np.testing.assert_array_equal(alone, shared)
