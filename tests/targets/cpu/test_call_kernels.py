# pyright: basic
"""Calls of kernels: the same integers as the interpreter, and inputs that stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.targets.compile import lower


class Block(nn.Module):
    """A residual block whose branches read one quantized tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.one = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.two = nn.Conv2d(16, 16, 3, padding=1)
        self.shortcut = nn.Conv2d(8, 16, 1, stride=2)
        self.last = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        y = self.two(torch.relu(self.one(x)))
        x = torch.relu(y + self.shortcut(x))
        return self.last(x.amax((2, 3)))


@pytest.fixture(scope="module")
def block() -> nn.Module:
    torch.manual_seed(0)
    return Block().eval()


@pytest.mark.parametrize("recipe", ["w8a8", "w4a8", "w3a4", "w1.58a8", "w1a8", "w8a8-tensor"])
def test_integers_are_the_interpreters(block: nn.Module, recipe: str) -> None:
    x = torch.randn(2, 3, 12, 12)
    program = fewbit.quantize(block, recipe, example_inputs=(x,))
    art = fewbit.compile(program, name="block")
    np.testing.assert_array_equal(art(x.numpy()), program.run(x.numpy())[0])


@pytest.mark.parametrize("recipe", ["w1a1", "w1a2", "w1.58a1"])
def test_layers_of_bits(recipe: str) -> None:
    """Channels enough for kernels that count bits, and padding, which one bit cannot say."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(64, 36, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(576, 9)
    ).eval()
    x = torch.randn(2, 64, 8, 7)
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    found = fewbit.compile(program, name="net")(x.numpy(), threads=2)
    np.testing.assert_array_equal(found, program.run(x.numpy())[0])


@pytest.mark.parametrize("batch", [1, 3])
def test_any_batch(block: nn.Module, batch: int) -> None:
    shapes = {"x": {0: torch.export.Dim("batch")}}
    example = (torch.randn(2, 3, 12, 12),)
    program = fewbit.quantize(block, "w8a8", example_inputs=example, dynamic_shapes=shapes)
    x = np.random.default_rng(batch).standard_normal((batch, 3, 12, 12)).astype(np.float32)
    np.testing.assert_array_equal(fewbit.compile(program, name="b")(x), program.run(x)[0])


def test_every_layer_is_a_call(block: nn.Module) -> None:
    program = fewbit.quantize(block, "w4a8", example_inputs=(torch.randn(2, 3, 12, 12),))
    text = lower(program, "linalg")
    for layer in ("first", "one", "two", "shortcut", "last"):
        assert f"_{layer}(" in text
    assert "kernel.conv2d" not in text


@pytest.mark.parametrize("recipe", ["w4a8g32", "w8a4g16", "w3a8g96", "w1.58a8g32", "w1a8g32"])
def test_scales_of_groups(recipe: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(192, 96), nn.ReLU(), nn.Linear(96, 40)).eval()
    x = torch.randn(3, 192)
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    art = fewbit.compile(program, name="net")
    expected = program.run(x.numpy())[0]
    for threads in (1, 2):
        np.testing.assert_array_equal(art.run(x.numpy(), threads=threads)[0], expected)
    assert lower(program, "linalg").count("call @kernel.") == 4


def test_scales_of_groups_behind_an_image() -> None:
    """The columns of a weight stay in their groups, and so the image is turned."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 10)).eval()
    x = torch.randn(2, 3, 8, 8)
    recipe = {"default": "w8a8", "layers": {"2": "w4a8g36"}}
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    found = fewbit.compile(program, name="net")(x.numpy())
    np.testing.assert_array_equal(found, program.run(x.numpy())[0])


@pytest.mark.parametrize("recipe", ["w4a8g2", "w4a8-asym", "w4afp", "wfpa8"])
def test_what_has_no_kernel_is_loops(block: nn.Module, recipe: str) -> None:
    layer = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    x = torch.randn(3, 16)
    program = fewbit.quantize(layer, recipe, example_inputs=(x,))
    found = fewbit.compile(program, name="net")(x.numpy())
    np.testing.assert_allclose(found, program.run(x.numpy())[0], rtol=1e-5, atol=1e-5)


def test_grouped_and_depthwise() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=(2, 1), groups=4),
    ).eval()
    x = torch.randn(2, 8, 9, 7)
    for recipe in ("w8a8", "w2a8"):
        program = fewbit.quantize(model, recipe, example_inputs=(x,))
        found = fewbit.compile(program, name="net")(x.numpy())
        np.testing.assert_array_equal(found, program.run(x.numpy())[0])
    floats = fewbit.compile(model, example_inputs=(x,), name="net")(x.numpy())
    np.testing.assert_allclose(floats, model(x).detach(), atol=1e-5)
