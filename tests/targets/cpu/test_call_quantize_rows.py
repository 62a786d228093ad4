"""Quantization of activations as calls: the interpreter's bits, with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.program.program import Program
from fewbit.targets.compile import lower


def quantization(x: str, granularity: str, scale: str, bits: int = 8, mode: str = "max") -> Program:
    u, s = f"tensor<{x}x!mico.int<{bits}>>", f"tensor<{scale}f32>"
    how = f'bits = {bits}, granularity = "{granularity}", mode = "{mode}"'
    return Program.parse(
        f"func.func @main(%x: tensor<{x}xf32>) -> ({u}, {s}) {{\n"
        f"  %u, %s = mico.activation_quant(%x) {{{how}}}"
        f" : (tensor<{x}xf32>) -> ({u}, {s})\n"
        f"  func.return %u, %s : {u}, {s}\n}}"
    )


@pytest.mark.parametrize(
    ("x", "granularity", "scale", "shape", "phases"),
    [
        ("5x70", "row", "5x", (5, 70), 1),
        ("1x30000", "row", "1x", (1, 30000), 2),
        ("20x9000", "row", "20x", (20, 9000), 1),
        ("2x40x30x10", "sample", "2x", (2, 40, 30, 10), 2),
        ("2x3x5x10", "sample", "2x", (2, 3, 5, 10), 1),
        ("3x7000", "tensor", "", (3, 7000), 2),
        ("?x3x50", "row", "?x3x", (4, 3, 50), 1),
        ("?x40x30x10", "sample", "?x", (3, 40, 30, 10), 2),
        ("2x?x3", "sample", "2x", (2, 77, 3), 2),
    ],
)
def test_bits_are_the_interpreters(
    x: str, granularity: str, scale: str, shape: tuple[int, ...], phases: int
) -> None:
    given = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for bits in (8 if phases == 1 else 5, 2, 1):
        program = quantization(x, granularity, scale, bits)
        expected = program.run(given)
        compiled = fewbit.compile(program, name="net")
        for threads in (1, 3):
            for found, wanted in zip(compiled.run(given, threads=threads), expected, strict=True):
                assert found.tobytes() == wanted.tobytes()
        assert lower(program, "linalg").count("call @kernel.") == phases


@pytest.mark.parametrize("recipe", ["w8a8", "w4a6"])
@pytest.mark.parametrize("batch", [1, 2])
def test_products_find_the_largest_magnitude(recipe: str, batch: int) -> None:
    """One sample's is found; a grouped convolution is several calls, and leaves it to another."""
    manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 20, 3, padding=1), nn.ReLU(),
        nn.Conv2d(20, 20, 3, padding=1, groups=20), nn.ReLU6(),
        nn.Conv2d(20, 24, 1),
        nn.Conv2d(24, 24, 3, padding=1, groups=2),
        nn.Conv2d(24, 3, 1),
    ).eval()  # fmt: skip
    x = torch.randn(batch, 3, 24, 24)
    program = fewbit.quantize(model, recipe, example_inputs=(x,))
    compiled = fewbit.compile(program, name="net")
    for threads in (1, 3):
        result = compiled.run(x.numpy(), threads=threads)[0]
        np.testing.assert_array_equal(result, program.run(x.numpy())[0])
    text = lower(program, "linalg")
    # The image is short; of what four products give, the grouped one's magnitude is looked for.
    assert text.count("magnitudes") == 2 * (1 if batch == 1 else 4)


def test_means_of_many_bits_are_loops() -> None:
    program = quantization("3x40", "row", "3x", mode="mean")
    given = np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)
    for found, wanted in zip(
        fewbit.compile(program, name="n").run(given), program.run(given), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    assert "call @kernel." not in lower(program, "linalg")
