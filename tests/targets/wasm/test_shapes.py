"""Random layers: sizes that fill no vector or tile, windows of all kinds, every width."""

# pyright: basic
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.passes.quant.integer_only import integer_only
from fewbit.program.program import Program
from fewbit.quant import calibrate
from tests.targets.wasm.in_node import check

ENGINES = ("wasm", "wasm:simd", "wasm:relaxed")
RECIPES = ("w8a8", "w5a6", "w4a8", "w2a2", "w1a1", "w1.58a8")


def _network(seed: int) -> tuple[nn.Module, tuple[int, ...]]:
    """Return a network of a few layers, and the shape of its input."""
    random = np.random.default_rng(seed)

    def some(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    torch.manual_seed(seed)
    channels, height, width = some(1, 9), some(9, 14), some(9, 14)
    layers: list[nn.Module] = []
    shape = (1, channels, height, width)
    for _ in range(2):
        kernel = (some(1, 3), some(1, 4))
        options = {
            "stride": (some(1, 2), some(1, 2)),
            "padding": (some(0, kernel[0] - 1), some(0, kernel[1] - 1)),
            "dilation": 1,
        }
        out = some(1, 21)
        if random.random() < 0.4:
            out = channels
            layers.append(nn.Conv2d(channels, out, kernel, groups=channels, **options))
        else:
            layers.append(nn.Conv2d(channels, out, kernel, **options))
        channels = out
        if random.random() < 0.6:
            layers.append(nn.ReLU())
    layers += [nn.Flatten(), nn.LazyLinear(some(1, 19)), nn.ReLU(), nn.LazyLinear(some(1, 13))]
    model = nn.Sequential(*layers).eval()
    model(torch.zeros(shape))
    return model, shape


def _quantized(seed: int, recipe: str, integers: bool = False) -> Program:
    model, shape = _network(seed)
    program = fewbit.import_model(model, (torch.zeros(shape),))
    if not recipe.endswith("static"):
        return fewbit.quantize(program, recipe)
    sample = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    found = fewbit.quantize(program, recipe, calibrate(program, [(sample,)], recipe))
    return integer_only(found, strict=True, fixed_point=True) if integers else found


@pytest.mark.parametrize("seed", range(2))
def test_random_layers(seed: int, tmp_path: Path) -> None:
    check(_quantized(seed, "w8a8"), "wasm:simd", tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("seed", range(2, 8))
def test_random_layers_of_all_widths(engine: str, recipe: str, seed: int, tmp_path: Path) -> None:
    check(_quantized(seed, recipe), engine, tmp_path / "net")


@pytest.mark.slow
@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("seed", range(9, 16))
def test_random_layers_with_static_scales(integers: bool, seed: int, tmp_path: Path) -> None:
    check(_quantized(seed, "w8a8-static", integers), "wasm:simd", tmp_path / "net")


@pytest.mark.parametrize("channels", [8, 11, 24])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise(channels: int, stride: int, tmp_path: Path) -> None:
    torch.manual_seed(channels)
    model = nn.Conv2d(channels, channels, 3, stride, padding=1, groups=channels)
    program = fewbit.import_model(model, (torch.zeros(1, channels, 7, 9),))
    check(fewbit.quantize(program, "w8a8"), "wasm:simd", tmp_path / "net")


@pytest.mark.parametrize("length", [4, 5, 16, 19, 67])
def test_quantization_of_rows(length: int, tmp_path: Path) -> None:
    torch.manual_seed(length)
    program = fewbit.import_model(nn.Linear(length, 8), (torch.zeros(3, length),))
    check(fewbit.quantize(program, "w8a8"), "wasm:simd", tmp_path / "net")
