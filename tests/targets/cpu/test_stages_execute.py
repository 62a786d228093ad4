"""The program after each stage, executed, against the interpreter on the program as it was given."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from tests.targets.cpu.stages import Array, after, run_linalg, run_llvm, run_mlir

ROUNDING = 2e-5


class Residual(nn.Module):
    """Convolutions, pooling, and a sum of two ways through them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        x = self.pool(x + torch.relu(self.second(x)))
        return self.last(x.flatten(1))


class Block(nn.Module):
    """A transformer's: attention and two linear layers, each behind a norm and around a sum."""

    def __init__(self, width: int = 24, heads: int = 3) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (
            part.view(split).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 7))


def imported(module: nn.Module, shape: tuple[int, ...], *, dynamic: bool = False) -> Program:
    manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.2)
    shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
    return fewbit.import_model(module.eval(), (torch.randn(shape),), shapes)


def sample(shape: tuple[int, ...]) -> list[Array]:
    return [np.random.default_rng(1).standard_normal(shape).astype(np.float32)]


@cache
def case(name: str) -> tuple[Program, list[Array], list[Array]]:
    """A program, its inputs and what the interpreter makes of them."""
    if name == "mlp":
        program, inputs = imported(mlp(), (3, 20)), sample((3, 20))
    elif name == "mlp of any batch":
        program, inputs = imported(mlp(), (3, 20), dynamic=True), sample((11, 20))
    elif name == "lenet w8a8":
        program = quantize(fewbit.import_model("zoo:lenet"), "w8a8")
        inputs = sample((2, 1, 28, 28))
    elif name == "residual":
        program, inputs = imported(Residual(), (1, 3, 8, 8)), sample((1, 3, 8, 8))
    else:
        program, inputs = imported(Block(), (1, 10, 24)), sample((1, 10, 24))
    return program, inputs, list(program.run(*inputs))


CASES = ("mlp", "mlp of any batch", "lenet w8a8", "residual", "transformer block")


def agree(name: str, found: list[Array]) -> None:
    _, _, expected = case(name)
    for a, b in zip(found, expected, strict=True):
        if name == "lenet w8a8":
            np.testing.assert_array_equal(a, b)
        else:
            assert np.abs(a - b).max() <= ROUNDING * np.abs(b).max()


@pytest.mark.parametrize("stage", ["mico", "kernel"])
@pytest.mark.parametrize("name", CASES)
def test_before_kernels_are_called(name: str, stage: str) -> None:
    program, inputs, _ = case(name)
    agree(name, list(after(program, stage).program.run(*inputs)))


@pytest.mark.parametrize("name", CASES)
def test_linalg(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, inputs, _ = case(name)
    agree(name, run_linalg(after(program, "linalg"), inputs, monkeypatch))


@pytest.mark.parametrize("stage", ["memref", "loops"])
@pytest.mark.parametrize("name", CASES)
def test_memory(name: str, stage: str) -> None:
    program, inputs, expected = case(name)
    agree(name, run_mlir(after(program, stage), stage, inputs, expected))


@pytest.mark.parametrize("name", CASES)
def test_llvm(name: str) -> None:
    program, inputs, expected = case(name)
    compilation = after(program, "llvm")
    for threads in (1, 3):
        agree(name, run_llvm(compilation, inputs, expected, threads))
