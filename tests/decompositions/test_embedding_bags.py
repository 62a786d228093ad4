# pyright: basic
"""Bags of embeddings, of equal sizes and by their offsets."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.frontends.torch.agreement import assert_agrees

MODES = ["sum", "mean", "max"]


@pytest.mark.parametrize("mode", MODES)
def test_bags_of_one_size(mode: str) -> None:
    assert_agrees(nn.EmbeddingBag(10, 4, mode=mode), torch.randint(0, 10, (3, 5)))


@pytest.mark.parametrize("mode", MODES)
def test_by_offsets_with_an_empty_bag_and_padding(mode: str) -> None:
    bags = nn.EmbeddingBag(10, 4, mode=mode, padding_idx=1)
    assert_agrees(bags, torch.randint(0, 4, (12,)), torch.tensor([0, 3, 3, 7]))


def test_with_weights_and_a_last_offset() -> None:
    bags = nn.EmbeddingBag(10, 4, mode="sum", include_last_offset=True)
    inputs = torch.randint(0, 10, (7,)), torch.tensor([0, 3, 7]), torch.randn(7)
    assert_agrees(lambda i, o, w: bags(i, o, w), *inputs)
