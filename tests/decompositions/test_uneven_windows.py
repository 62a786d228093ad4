# pyright: basic
"""Adaptive pooling of any size to any other, and pooling of single images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import fewbit
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


class Pools(nn.Module):
    """Pooling to sizes that do not divide those of the image, and to one that follows it."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rows, places = F.adaptive_max_pool2d(x, (3, 2), return_indices=True)
        pooled = F.adaptive_avg_pool2d(x, (2, 3)), nn.AdaptiveAvgPool2d((None, 3))(x)
        return *pooled, F.adaptive_avg_pool1d(x[:, 0], 5), rows, places


def test_images_of_open_size() -> None:
    open_sizes = {"x": {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO}}
    program = fewbit.import_model(Pools(), (torch.randn(2, 3, 9, 9),), dynamic_shapes=open_sizes)
    compiled = fewbit.compile(program, "cpu")
    for size in ((1, 3, 9, 9), (2, 3, 7, 12), (1, 3, 3, 2)):
        x = torch.randn(size)
        for run in (program.run, compiled.run):
            for ours, theirs in zip(run(x.numpy()), Pools()(x), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
