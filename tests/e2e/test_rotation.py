"""Rotated layers: PyTorch, the interpreter and targets have the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.quant import calibrate, prepare_qat, set_exact
from fewbit.targets.compile import lower

RECIPES = ("w8a8h32", "w4a8g32h16", "w1.58a8h64,down=w3a4h2", "w8a8h32-static", "w4a8h32-asym")


class Tied(nn.Module):
    """A table that is the head too, and an MLP between."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 64)
        self.up = nn.Linear(64, 64)
        self.down = nn.Linear(64, 64)
        self.head = nn.Linear(64, 40, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        return self.head(x + self.down(torch.relu(self.up(x))))


@pytest.fixture(scope="module")
def model() -> nn.Module:
    manual_seed(0)
    return Tied().eval()


TOKENS = torch.arange(10).reshape(2, 5)


@pytest.mark.parametrize("recipe", RECIPES)
def test_pytorch_interpreter_and_processor_agree(model: nn.Module, recipe: str) -> None:
    scales = calibrate(model, [TOKENS], recipe)
    program = fewbit.quantize(model, recipe, scales, example_inputs=(TOKENS,))
    (expected,) = program.run(TOKENS.numpy())
    exact = set_exact(prepare_qat(model, recipe, calibration=scales))
    np.testing.assert_array_equal(exact(TOKENS).detach().numpy(), expected)
    np.testing.assert_array_equal(fewbit.compile(program)(TOKENS.numpy()), expected)


@pytest.mark.parametrize("target", ["vexii", "bitfusion"])
def test_loops_of_other_targets_agree(model: nn.Module, target: str) -> None:
    program = fewbit.quantize(model, "w8a8h32", example_inputs=(TOKENS,))
    (expected,) = program.run(TOKENS.numpy())
    np.testing.assert_array_equal(fewbit.compile(program, target)(TOKENS.numpy()), expected)


def test_any_number_of_rows(model: nn.Module) -> None:
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    program = fewbit.quantize(
        model, "w8a8h64,down=w8a8h2", example_inputs=(TOKENS,), dynamic_shapes=shapes
    )
    art = fewbit.compile(program)
    for rows in (1, 3, 33):
        tokens = np.arange(rows * 5).reshape(rows, 5) % 40
        np.testing.assert_array_equal(art(tokens), program.run(tokens)[0])


def test_layers_that_share_an_input_share_its_rotation() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate, self.up = nn.Linear(64, 32), nn.Linear(64, 32)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sigmoid(self.gate(x)) * self.up(x)

    program = fewbit.quantize(Shared(), "w8a8h64", example_inputs=(torch.zeros(2, 64),))
    assert program.text().count("mico.hadamard") == 2
    assert lower(program, "kernel").count("mico.hadamard") == 1


def gradients(model: nn.Module) -> list[torch.Tensor]:
    model.zero_grad()
    model(TOKENS).square().mean().backward()
    results = [parameter.grad for parameter in model.parameters()]
    assert all(each is not None for each in results)
    return [each.flatten().clone() for each in results if each is not None]


def test_gradients_pass_through_a_rotation(model: nn.Module) -> None:
    rotated, plain = gradients(prepare_qat(model, "w8a8h32")), gradients(model)
    assert len(rotated) == len(plain) == 5
    for ours, expected in zip(rotated, plain, strict=True):
        assert torch.nn.functional.cosine_similarity(ours, expected, dim=0) > 0.99
