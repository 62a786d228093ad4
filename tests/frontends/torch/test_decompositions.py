# pyright: basic
"""Ops that are taken apart by decompositions of ours agree with PyTorch's, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import fewbit
from fewbit.frontends import import_model


class Apply(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def check(function: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Interpreted and compiled, a function of tensors is what PyTorch computes."""
    expected = function(*inputs).numpy()
    arrays = [x.numpy() for x in inputs]
    program = import_model(Apply(function), inputs)
    for found in (program.run(*arrays)[0], fewbit.compile(program)(*arrays)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(3))
def test_roll(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 6, 3).tolist()
    shifts = rng.integers(-9, 10, 2).tolist()
    x = torch.from_numpy(rng.standard_normal(shape).astype(np.float32))
    check(lambda x: x.roll(shifts, (1, -1)) + x.roll(shifts[0], 0), x)
    check(lambda x: x.roll(shifts[0]), x)


def test_roll_of_the_windows_of_a_swin_transformer() -> None:
    x = torch.arange(2 * 7 * 7 * 3, dtype=torch.int32).reshape(2, 7, 7, 3)
    check(lambda x: x.roll((-3, -3), (1, 2)), x)


def test_roll_of_a_dynamic_size() -> None:
    model = Apply(lambda x: x.roll(3, 1))
    program = import_model(model, (torch.randn(2, 7),), (({1: Dim("n")},),))
    compiled = fewbit.compile(program)
    for size in (2, 3, 11):
        x = torch.randn(2, size)
        np.testing.assert_array_equal(compiled(x.numpy()), model(x).numpy())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_fmod(seed: int, dtype: type) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 8, 2)
    x = (rng.standard_normal((rows, columns)) * 100).astype(dtype)
    y = (rng.choice([-1, 1], columns) * rng.uniform(1, 9, columns)).astype(dtype)
    check(torch.fmod, torch.from_numpy(x), torch.from_numpy(y))
    check(lambda x: torch.fmod(x, -3), torch.from_numpy(x))
    check(lambda x: torch.fmod(x, 2.5), torch.from_numpy(x))


def test_fmod_is_exact_and_knows_infinities() -> None:
    x = torch.tensor([1e30, -1e30, 3.0, -3.0, torch.inf, 5.0, torch.nan, 5.5])
    y = torch.tensor([0.3, 0.7, torch.inf, -torch.inf, 2.0, 0.0, 1.0, torch.nan])
    check(torch.fmod, x, y)
    least = torch.tensor([-(2**31), 2**31 - 1, -(2**31)], dtype=torch.int32)
    check(torch.fmod, least, torch.tensor([3, -7, 2**31 - 1], dtype=torch.int32))
