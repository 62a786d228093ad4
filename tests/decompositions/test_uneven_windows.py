# pyright: basic
"""Adaptive pooling of any size to any other, and pooling of single images."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.frontends.torch.agreement import assert_agrees

SIZES = [((7, 7), (3, 5)), ((5, 4), (9, 7)), ((8, 8), (4, 2)), ((6, 1), (4, 1))]


@pytest.mark.parametrize(("given", "wanted"), SIZES)
def test_averages(given: tuple[int, int], wanted: tuple[int, int]) -> None:
    assert_agrees(lambda x: F.adaptive_avg_pool2d(x, wanted), torch.randn(2, 3, *given))


@pytest.mark.parametrize(("given", "wanted"), SIZES[:2])
def test_maxima_and_their_places(given: tuple[int, int], wanted: tuple[int, int]) -> None:
    x = torch.randn(2, 3, *given)
    assert_agrees(lambda x: F.adaptive_max_pool2d(x, wanted, return_indices=True), x)


def test_other_ranks() -> None:
    assert_agrees(lambda x: F.adaptive_avg_pool1d(x, 3), torch.randn(1, 2, 7))
    assert_agrees(lambda x: F.adaptive_avg_pool3d(x, (2, 3, 2)), torch.randn(1, 2, 5, 7, 4))
    assert_agrees(lambda x: F.adaptive_max_pool3d(x, (2, 3, 2)), torch.randn(1, 2, 5, 7, 4))
    assert_agrees(lambda x: F.interpolate(x, (3, 4), mode="area"), torch.randn(1, 2, 5, 6))


def test_an_infinity_stays_in_its_windows() -> None:
    x = torch.randn(1, 1, 7, 7)
    x[0, 0, 0, 0] = torch.inf
    assert_agrees(lambda x: F.adaptive_avg_pool2d(x, (3, 5)), x)


def test_single_images() -> None:
    x = torch.randn(3, 8, 8)
    assert_agrees(
        lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 2), F.adaptive_avg_pool2d(x, 3)), x
    )
