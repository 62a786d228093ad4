"""Every zoo model compiled for this machine, float and quantized, against the interpreter.

Floats agree within rounding, or within what rounding is in PyTorch itself, and so do quantized
networks as a whole: float functions between layers have the interpreter's bits
(`numerics/floats.py`), so that no integer behind them differs. Networks of layers, ReLU and maximum
pooling agree to the bit. Batch norms are folded before quantizing, as the command line does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.models import zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.passes.native import native_pipeline
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from fewbit.targets.cpu.target import begin_cpu, isa_of
from tests.e2e.layerwise import ROUNDING, relative
from tests.e2e.own_error import assert_rounds_alike

QUICK = ("mlp", "lenet", "ds-cnn", "llama-tiny")
EXACT = ("mlp", "lenet", "cmsis-cnn", "vgg")
"""Networks of layers, ReLU and maximum pooling: nothing but integers decides."""


def names() -> list[Any]:
    """All but those that are a model of the list, only larger."""
    names = [name for name in zoo() if not name.startswith("llama-15m")]
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def pairs() -> list[Any]:
    """Each with four recipes; in every run the large one of the quick has one of them."""
    return [
        pytest.param(name, recipe, marks=() if quick else pytest.mark.slow)
        for (name,) in (each.values for each in names())
        for recipe in ("w8a8", "w4a8", "w2a4", "w1.58a8")
        for quick in (name in QUICK and (name != "llama-tiny" or recipe == "w4a8"),)
    ]


def imported(name: str) -> Program:
    return fewbit.import_model(f"zoo:{name}")


@pytest.mark.parametrize("name", names())
def test_float(name: str) -> None:
    program = imported(name)
    inputs = made_up_inputs(program)
    art = fewbit.compile(program, name="net")
    for found, expected in zip(art.run(*inputs), program.run(*inputs), strict=True):
        assert_rounds_alike(name, inputs, found, expected)


@pytest.mark.parametrize(("name", "recipe"), pairs())
def test_quantized(name: str, recipe: str) -> None:
    floats = fold_batch_norm(imported(name))
    program = quantize(floats, recipe)
    inputs = made_up_inputs(program)
    results = fewbit.compile(program, name="net").run(*inputs)
    expected = program.run(*inputs)
    if name in EXACT:
        np.testing.assert_array_equal(results[0], expected[0])
    for ours, theirs in zip(results, expected, strict=True):
        assert relative(ours, theirs) < ROUNDING


@pytest.mark.parametrize(
    "name", ["lenet", "ds-cnn", pytest.param("llama-tiny", marks=pytest.mark.slow)]
)
def test_threads_give_the_same_bits(name: str) -> None:
    program = quantize(imported(name), "w4a8")
    inputs = made_up_inputs(program)
    art = fewbit.compile(program, name="net")
    alone = art.run(*inputs)
    for threads in (2, 3, 5):
        for a, b in zip(alone, art.run(*inputs, threads=threads), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("recipe", [None, "w4a8"])
def test_stages_of_ours_compute_the_same(recipe: str | None) -> None:
    """Until kernels are called, the interpreter runs the program after each stage."""
    program = imported("ds-cnn")
    program = program if recipe is None else quantize(fold_batch_norm(program), recipe)
    inputs = made_up_inputs(program)
    (expected,) = program.run(*inputs)
    for stage in ("mico", "kernel"):
        compilation = begin_cpu(program, "net", isa_of("cpu")).run(stage)
        (result,) = compilation.program.run(*inputs)
        assert relative(result, expected) < ROUNDING


def test_every_stage_has_a_text() -> None:
    program = imported("lenet")
    for stage in native_pipeline().names:
        assert len(begin_cpu(program, "net", isa_of("cpu")).run(stage).text) > 100


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_any_batch_in_one_library(batch: int) -> None:
    program = imported("lenet")
    art = fewbit.compile(program, name="net")
    x = np.random.default_rng(batch).standard_normal((batch, 1, 28, 28)).astype(np.float32)
    assert relative(art(x), program.run(x)[0]) < ROUNDING
