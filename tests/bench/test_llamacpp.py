"""What is written for llama.cpp, as far as it can be seen without it."""

from __future__ import annotations

import numpy as np
import torch

from fewbit.bench.peers import find_tool, missing_packages
from fewbit.bench.peers.llamacpp import LAYERS, OTHERS, interleave_halves, tensor_name
from fewbit.models.llama import LlamaDecode, rotate


def test_it_is_asked_for_by_name() -> None:
    assert find_tool("llama.cpp").variants(quantized=True) == ("Q4_0",)
    assert set(missing_packages("llama.cpp", quantized=True)) <= {"llama_cpp", "gguf"}


def test_every_weight_has_a_name() -> None:
    model = LlamaDecode(32, 8, 1, 2, 2, 16, 4)
    names = {tensor_name(name) for name, _ in model.named_parameters()}
    assert names == {
        *(f"blk.0.{part}.weight" for part in LAYERS.values()),
        *(f"{part}.weight" for part in OTHERS.values()),
    }


def test_rotating_neighbours_is_rotating_halves() -> None:
    """Queries and keys only count through q · kᵀ, which does not change with the features' order."""
    rng = np.random.default_rng(0)
    heads, half, columns = 3, 4, 5
    angles = torch.tensor(rng.standard_normal(half))
    x = rng.standard_normal(columns)
    weight = rng.standard_normal((heads * 2 * half, columns))
    halves = torch.tensor((weight @ x).reshape(heads, 2 * half))
    rotated = rotate(halves, angles.cos(), angles.sin())
    pairs = torch.tensor((interleave_halves(weight, heads) @ x).reshape(heads, half, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    cos, sin = angles.cos(), angles.sin()
    neighbours = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1)
    torch.testing.assert_close(neighbours.transpose(1, 2).flatten(1), rotated)
