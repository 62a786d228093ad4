"""Calls of kernels: the same integers as the interpreter, and inputs that stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.language.gguf_blocks import read_blocks
from fewbit.targets.compile import lower
from tests.language.blocks import random_blocks


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
    manual_seed(0)
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
    manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(64, 36, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(576, 9)
    ).eval()
    x = torch.randn(2, 64, 8, 7)
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    result = fewbit.compile(program, name="net")(x.numpy(), threads=2)
    np.testing.assert_array_equal(result, program.run(x.numpy())[0])


class Activated(nn.Module):
    """Layers with an activation behind each; with `both`, what is in front of it is read too."""

    def __init__(self, layers: list[nn.Module], activation: nn.Module, both: bool) -> None:
        super().__init__()
        self.layers, self.activation, self.both = nn.ModuleList(layers), activation, both

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        seen: list[torch.Tensor] = []
        for layer in self.layers:
            sums = layer(x if isinstance(layer, nn.Conv2d) else x.flatten(1))
            x = self.activation(sums)
            seen += [sums] if self.both else []
        return (x, *seen)


ACTIVATIONS = (nn.SiLU(), nn.GELU(), nn.GELU("tanh"))
RECIPES = ("fp", "w8a8", "w4a8", "w8a8-static")
QUICK = ((0, "w4a8"), (1, "w8a8-static"), (2, "fp"), (2, "w8a8"))
"""Each activation and each recipe once; the other pairs are slow tests."""


@pytest.mark.parametrize(
    ("activation", "recipe"),
    [
        pytest.param(
            activation,
            recipe,
            marks=() if (i, recipe) in QUICK else pytest.mark.slow,
            id=f"{activation}-{recipe}",
        )
        for i, activation in enumerate(ACTIVATIONS)
        for recipe in RECIPES
    ],
)
def test_activations_have_the_bits_of_loops(activation: nn.Module, recipe: str) -> None:
    """Sums that something else reads are stored, and the activation is a loop behind them."""
    manual_seed(0)
    layers: list[nn.Module] = [
        nn.Conv2d(3, 24, 3), nn.Conv2d(24, 24, 3, groups=24), nn.Linear(384, 40), nn.Linear(40, 33),
    ]  # fmt: skip
    x = torch.randn(2, 3, 8, 8)
    results: list[np.ndarray] = []
    for both in (False, True):
        model = Activated(layers, activation, both).eval()
        program = fewbit.import_model(model, (x,))
        if recipe != "fp":
            scales = {f"layers.{i}": 0.02 for i in range(4)} if "static" in recipe else None
            program = fewbit.quantize(program, recipe, scales)
        assert lower(program, "kernel").count("activation = ") == (0 if both else 4)
        results.append(fewbit.compile(program, name="net").run(x.numpy(), threads=2)[0])
        expected = program.run(x.numpy())[0]
        np.testing.assert_allclose(results[-1], expected, rtol=0, atol=1e-5 * abs(expected).max())
    np.testing.assert_array_equal(results[0], results[1])


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
    manual_seed(0)
    model = nn.Sequential(nn.Linear(192, 96), nn.ReLU(), nn.Linear(96, 40)).eval()
    x = torch.randn(3, 192)
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    art = fewbit.compile(program, name="net")
    expected = program.run(x.numpy())[0]
    for threads in (1, 2):
        np.testing.assert_array_equal(art.run(x.numpy(), threads=threads)[0], expected)
    assert lower(program, "linalg").count("call @kernel.") == 4


@pytest.mark.parametrize(
    ("kind", "bits"), [("Q4_0", 4.5), ("Q4_K", 4.625), ("Q5_K", 5.625), ("Q6_K", 6.5625)]
)
def test_scales_of_files_take_as_much_as_in_the_file(kind: str, bits: float) -> None:
    """Factors of super-blocks stay f16, and what they are multiplied by stays a byte."""
    outputs, inputs = 64, 512
    program = fewbit.import_model(
        nn.Linear(inputs, outputs, bias=False), example_inputs=(torch.randn(3, inputs),)
    )
    blocks = random_blocks(GGMLQuantizationType[kind], 0, outputs, inputs)
    weights = {"weight": read_blocks(blocks, GGMLQuantizationType[kind], (outputs, inputs))}
    program = fewbit.quantize(program, "wfpa8", weights=weights)
    art = fewbit.compile(program, "cpu:x86-64-v4", name="net")
    assert art.manifest.weight_bytes <= outputs * inputs * bits / 8 + 64
    x = np.random.default_rng(0).standard_normal((3, inputs)).astype(np.float32)
    expected = program.run(x)[0]
    for threads in (1, 2):
        result = fewbit.compile(program, name="net").run(x, threads=threads)[0]
        np.testing.assert_array_equal(result, expected)


def test_scales_of_groups_behind_an_image() -> None:
    """The columns of a weight stay in their groups, and so the image is turned."""
    manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 10)).eval()
    x = torch.randn(2, 3, 8, 8)
    recipe = {"default": "w8a8", "layers": {"2": "w4a8g36"}}
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    result = fewbit.compile(program, name="net")(x.numpy())
    np.testing.assert_array_equal(result, program.run(x.numpy())[0])


@pytest.mark.parametrize("recipe", ["w4a8g2", "w4a8-asym", "w4afp", "wfpa8"])
def test_what_has_no_kernel_is_loops(block: nn.Module, recipe: str) -> None:
    layer = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    x = torch.randn(3, 16)
    program = fewbit.quantize(layer, recipe, example_inputs=(x,))
    result = fewbit.compile(program, name="net")(x.numpy())
    np.testing.assert_allclose(result, program.run(x.numpy())[0], rtol=1e-5, atol=1e-5)


def test_grouped_and_depthwise() -> None:
    manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=(2, 1), groups=4),
    ).eval()
    x = torch.randn(2, 8, 9, 7)
    for recipe in ("w8a8", "w2a8"):
        program = fewbit.quantize(model, recipe, example_inputs=(x,))
        result = fewbit.compile(program, name="net")(x.numpy())
        np.testing.assert_array_equal(result, program.run(x.numpy())[0])
    floats = fewbit.compile(model, example_inputs=(x,), name="net")(x.numpy())
    np.testing.assert_allclose(floats, model(x).detach(), atol=1e-5)
