"""A trained model, converted and quantized, is the program that quantizing its weights gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fewbit.base.typed_torch import manual_seed, update
from fewbit.frontends.quantize import quantize
from fewbit.ir.text import print_module
from fewbit.quant import calibrate, convert, prepare_qat, recipe_of, set_exact, unprepare

RECIPES = [
    "w8a8",
    "w8a6",
    "w2a2",
    "w1a1",
    "w4a4",
    "w4a8-static",
    "w4a8-asym",
    "w4a8-static-asym",
    "w6a8,0=w3a8g3,3=w4a8g8,5=w1.58a8",
    "w4afp,5=fp",
    "w8a8,3=w8a8h64",
    "w4a8,3=w4a8g8h32-static",
    "w3a8,3=w2a8h16-asym",
    "w4a8-mse,0=w3a8g3-signed,5=w8a8-signed",
    "w4a8,3=w4a8g16-offset,5=w2a8g5-offset",
    "w8a8,3=w5a8g32h64-offset,5=w8afpg10-offset",
    "w8a8,3=w4a8g16-blocks,5=w3a4g5-blocks",
    "w8a8,3=w4a8g32h64-offset-blocks,5=w4a8g2-blocks-asym",
    "w4a8,3=w4a8g16-signed-f16,5=w2a8g5-offset-f16",
    "w8a8,3=w1.58a8g8-f16,5=w5a8g2-mse-f16-blocks",
    [[8, 6, 4], [8, 8, 8]],
]


def train() -> nn.Module:
    """A few steps away from where it began, trained with few bits."""
    manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 10),
        nn.ReLU(),
        nn.Linear(10, 3),
    )
    prepared = prepare_qat(model, "w4a8")
    optimizer = torch.optim.SGD(prepared.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        prepared(torch.randn(2, 1, 8, 8)).square().mean().backward()
        update(optimizer)
    return unprepare(prepared).eval()


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_conversion_gives_the_program_of_the_weights(recipe: Any) -> None:
    model = train()
    x = torch.randn(2, 1, 8, 8)
    scales = calibrate(model, [x], recipe)
    prepared = prepare_qat(model, recipe, calibration=scales)
    converted = convert(prepared)
    program = quantize(converted, recipe_of(converted), scales, example_inputs=(x,))
    direct = quantize(model, recipe, scales, example_inputs=(x,))
    assert print_module(program.module) == print_module(direct.module)
    (y,) = program.run(x.numpy())
    expected = set_exact(prepared)(x).detach().numpy()
    assert np.linalg.norm(y - expected) <= 1e-5 * np.linalg.norm(expected)
