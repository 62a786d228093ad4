# pyright: basic
"""What mixtures of experts use: matmuls of groups, histograms, and memory that is not set."""

from __future__ import annotations

import pytest
import torch

from tests.frontends.torch.agreement import assert_agrees

grouped_mm = torch.ops.aten._grouped_mm.default
OFFSETS = torch.tensor([3, 3, 11, 16], dtype=torch.int32)


def test_groups_of_rows() -> None:
    a, b = torch.randn(16, 8).bfloat16(), torch.randn(4, 8, 16).bfloat16()
    assert_agrees(lambda a, b, o: grouped_mm(a, b, offs=o), a, b, OFFSETS, rtol=2**-7)


def test_groups_of_what_is_summed_over() -> None:
    a, b = torch.randn(8, 16).bfloat16(), torch.randn(16, 8).bfloat16()
    assert_agrees(lambda a, b, o: grouped_mm(a, b, offs=o), a, b, OFFSETS, rtol=2**-6)


def test_groups_of_columns() -> None:
    a, b = torch.randn(4, 8, 8).bfloat16(), torch.randn(8, 16).bfloat16()
    assert_agrees(lambda a, b, o: grouped_mm(a, b, offs=o), a, b, OFFSETS, rtol=2**-7)


@pytest.mark.parametrize("bounds", [(0, 7), (0, 8), (-1.5, 2.5), (0, 0)])
def test_histograms(bounds: tuple[float, float]) -> None:
    x = torch.cat([torch.randint(0, 9, (30,)).float(), torch.randn(30) * 3])
    assert_agrees(lambda x: torch.histc(x, 8, *bounds), x)


def test_of_one_number() -> None:
    assert_agrees(lambda x: torch.histc(x, 4), torch.full((5,), 2.0))


def test_memory_that_is_set_afterwards() -> None:
    def fill(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_permuted((2, 3), (1, 0)).fill_(1.0) + x

    assert_agrees(fill, torch.randn(2, 3))
