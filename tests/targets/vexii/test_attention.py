"""Queries and keys that a recipe quantizes are multiplied by dot products."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.cost.layers import made_up_inputs
from fewbit.errors import UsageError

WIDTH, HEADS = 16, 2


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (
            layer(x).view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize(("target", "word"), [("vexii", 4), ("vexii:rv64", 8)])
@pytest.mark.parametrize("tokens", [1, 3, 5, 8])
@pytest.mark.parametrize("scheme", ["q8k8", "q4k8s8"])
def test_scores_are_dot_products(target: str, word: int, tokens: int, scheme: str) -> None:
    manual_seed(tokens)
    net, x = Attention(), torch.randn(2, tokens, WIDTH)
    program = fewbit.quantize(
        fewbit.import_model(net, example_inputs=(x,)), f"w8a8,attention={scheme}"
    )
    artifact = fewbit.compile(program, target)
    assert np.array_equal(artifact.run(x.numpy())[0], program.run(x.numpy())[0])
    layers = 3 * 2 * tokens * WIDTH * WIDTH // word
    scores = 2 * HEADS * tokens * tokens * (WIDTH // HEADS) // word
    assert artifact.runner.events.counts["dot"] == layers + scores


def test_attention_that_is_not_there_is_refused() -> None:
    program = fewbit.import_model(torch.nn.Linear(4, 3), example_inputs=(torch.randn(1, 4),))
    with pytest.raises(UsageError, match="attention=q8k8, and the program has no attention"):
        fewbit.quantize(program, "w8a8,attention=q8k8")


@pytest.mark.slow
def test_a_network_takes_fewer_instructions() -> None:
    program = fewbit.import_model("zoo:cct")
    inputs = made_up_inputs(program, dynamic=1)
    taken: list[int] = []
    for recipe in ("w8a8", "w8a8,attention=q8k8"):
        quantized = fewbit.quantize(program, recipe)
        artifact = fewbit.compile(quantized, "vexii")
        found, wanted = artifact.run(*inputs)[0], quantized.run(*inputs)[0]
        assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
        taken.append(artifact.runner.events.counts["instructions"])
    assert taken[1] < 0.85 * taken[0]
