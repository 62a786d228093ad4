"""Parts that repeat, as functions: found by what they do, and the same bits as without."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.interpreter.interpreter import interpret
from fewbit.passes.graph.find_repeats import find_repeats
from fewbit.passes.graph.outline_repeats import outline_next
from fewbit.pipeline.compilation import run_passes
from fewbit.pipeline.entry import entry_of
from fewbit.program.program import Program
from fewbit.program.repeats import calls_of_repeated, repeated_functions
from fewbit.quant.quantize import quantize

DEPTH = 5


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


@pytest.fixture(scope="module")
def program() -> Program:
    """Layers of random weights, for any number of rows."""
    manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), *(Layer(64) for _ in range(DEPTH)), nn.Linear(64, 7))
    for name, weight in model.named_parameters():
        if "norm" in name:
            nn.init.uniform_(weight, 0.5, 2)
    rows = torch.export.Dim("rows", min=2, max=99)
    return fewbit.import_model(model.eval(), (torch.zeros(4, 32),), dynamic_shapes=({0: rows},))


def test_find_repeats_of_layers():
    first, *_ = find_repeats([9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 8], 3)
    assert (first.start, first.period, first.count, first.spare) == (1, 3, 3, 1)


def test_find_repeats_none():
    assert find_repeats([1, 2, 1, 2, 3], 3) == []


def test_one_function_is_interpreted_with_the_constants_of_each_call(program: Program):
    kernels = run_passes(program, "inline", "select-kernels", "propagate-layout", "fuse-epilogue")
    outlined = kernels.module.clone()
    assert outline_next(outlined, "part")
    calls = calls_of_repeated(entry_of(outlined), repeated_functions(outlined))
    assert len(calls) >= DEPTH - 1
    x = np.random.default_rng(0).standard_normal((6, 32), dtype=np.float32)
    (expected,) = interpret(kernels.module, x, store=program.store)
    (given,) = interpret(outlined, x, store=program.store)
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("recipe", [None, "w8a8-tensor", "w4a8g32"])
def test_compiled_once_gives_the_bits_of_each_compiled_alone(program: Program, recipe: str | None):
    # A profile counts each layer, so nothing is outlined.
    quantized = program if recipe is None else quantize(program, recipe)
    once, alone = fewbit.compile(quantized), fewbit.compile(quantized, profile=True)
    for rows in (1, 5, 33):
        x = np.random.default_rng(rows).standard_normal((rows, 32), dtype=np.float32)
        expected = alone(x)
        np.testing.assert_array_equal(once(x), expected)
        np.testing.assert_array_equal(once(x, threads=2), expected)
