"""Rounding to bf16 and back, which IREE 3.13 leaves out where what was rounded is summed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import fewbit
from fewbit.base.typed_torch import from_numpy
from tests.frontends.torch.agreement import Function


def sum_of_rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float().sum()


def test_what_is_summed_is_rounded_before() -> None:
    x = torch.tensor([1.003, 2.01, -0.5003])
    result = compiled(sum_of_rounded, x)
    np.testing.assert_allclose(result, sum_of_rounded(x).numpy(), rtol=1e-6)


def test_all_bits_are_rounded_as_pytorch_does() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 4000, np.uint32)
    halves = rng.integers(0, 1 << 15, 100, np.uint32) << 16 | 0x8000
    others = np.array([np.inf, -np.inf, np.nan, 3.4e38, -0.0, 1e-45], np.float32).view(np.uint32)
    x = from_numpy(np.concatenate([bits, halves, others]).view(np.float32))
    result = compiled(lambda x: x.bfloat16().float(), x)
    np.testing.assert_array_equal(result, x.bfloat16().float().numpy())


def compiled(function: Callable[[Tensor], Tensor], x: Tensor) -> NDArray[Any]:
    program = fewbit.import_model(Function(function), (x,))
    return fewbit.compile(program, "iree-cpu", name="net")(x.numpy())
