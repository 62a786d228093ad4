"""Attention of floats: the interpreter's bits, and no call of a library."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fewbit
from fewbit.base.typed_torch import from_numpy
from fewbit.program.program import Program
from fewbit.targets.compile import lower


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)


def attention(queries: int, tokens: int, size: int) -> tuple[Program, list[np.ndarray]]:
    rng = np.random.default_rng(tokens)
    shapes = [(1, 2, queries, size), (1, 2, tokens, size), (1, 2, tokens, size)]
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    return fewbit.import_model(Attention(), tuple(map(from_numpy, inputs))), inputs


@pytest.mark.parametrize(
    ("queries", "tokens", "size"), [(1, 1, 1), (1, 33, 16), (5, 7, 3), (99, 99, 64), (17, 40, 48)]
)
def test_bits_are_those_of_the_interpreter(queries: int, tokens: int, size: int) -> None:
    program, inputs = attention(queries, tokens, size)
    result = fewbit.compile(program, name="net").run(*inputs)[0]
    np.testing.assert_array_equal(result, program.run(*inputs)[0])


@pytest.mark.parametrize("target", ["cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:aarch64"])
@pytest.mark.parametrize("queries", [1, 9])
def test_no_library_is_called(target: str, queries: int) -> None:
    program, _ = attention(queries, 9, 5)
    assert "fmaf" not in lower(program, "object", target)
