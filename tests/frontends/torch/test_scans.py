"""Cumulative sums and products, along any dimension: eager, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.frontends import import_model


class Scan(nn.Module):
    def __init__(self, name: str, dim: int) -> None:
        super().__init__()
        self.name, self.dim = name, dim

    def forward(self, x: Tensor) -> Tensor:
        return getattr(torch, self.name)(x, self.dim)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.bool_])
def test_agrees_with_pytorch(name: str, dim: int, dtype: type) -> None:
    rng = np.random.default_rng(dim + 1)
    x = from_numpy((rng.standard_normal(rng.integers(1, 7, 3)) * 3).astype(dtype))
    model = Scan(name, dim)
    expected = model(x).numpy()
    program = import_model(model, (x,))
    (interpreted,) = program.run(x.numpy())
    compiled = fewbit.compile(program)(x.numpy())
    assert compiled.dtype == expected.dtype
    np.testing.assert_array_equal(compiled, interpreted)
    np.testing.assert_allclose(compiled, expected, rtol=1e-5, atol=1e-6)


def test_of_16_bit_floats_are_not_rounded_in_between() -> None:
    x = torch.full((3000,), 0.3).half()
    compiled = fewbit.compile(import_model(Scan("cumsum", 0), (x,)))
    np.testing.assert_allclose(compiled(x.numpy()), x.cumsum(0).numpy(), rtol=2**-10)


def test_of_a_dynamic_length() -> None:
    """Positions in a sequence, as a decoder counts them where a mask is given."""
    model = Scan("cumsum", 1)
    program = import_model(model, (torch.ones(2, 7),), {"x": {1: Dim("n")}})
    compiled = fewbit.compile(program)
    for size in (1, 2, 30):
        x = torch.randint(-4, 4, (2, size)).float()
        np.testing.assert_array_equal(compiled(x.numpy()), model(x).numpy())
