"""Integer-only programs: kernels give integers to one another, the interpreter's to the bit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fewbit
from fewbit.base.typed_torch import manual_seed
from fewbit.frontends import import_model
from fewbit.ir.context import make_context
from fewbit.models import create, zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.passes.graph.inline import Inline
from fewbit.passes.quant.integer_only import integer_only
from fewbit.program.program import Program
from fewbit.quant.program_calibration import calibrate_program
from fewbit.quant.quantize import quantize
from fewbit.targets.compile import lower
from tests.targets.cpu import static_net


def whole(name: str, recipe: str) -> Program:
    """A model of the zoo, on integers."""
    manual_seed(0)
    example = zoo()[name].example_inputs
    program = import_model(create(name), example(1))
    Inline().apply(make_context(), program.module)
    program = fold_batch_norm(program)
    data = [tuple(t.numpy() for t in example(1, seed=seed)) for seed in range(2)]
    return integer_only(quantize(program, recipe, calibrate_program(program, data, recipe)))


SLOW = [("lenet", "w4a4-static"), ("resnet8", "w4a4-static"), ("kws-conv1d", "w8a8-static")]


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("lenet", "w8a8-static"),
        ("resnet8", "w8a8-static"),
        ("ds-cnn", "w8a8-static"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW),
    ],
)
def test_bits_are_the_interpreters(name: str, recipe: str) -> None:
    program = whole(name, recipe)
    art = fewbit.compile(program, name="net")
    for factor in (1, 10):  # beyond what calibration saw
        x = [factor * t.numpy() for t in zoo()[name].example_inputs(1, seed=9)]
        np.testing.assert_array_equal(art(*x), program.run(*x)[0])


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["w8a8-static", "w4a4-static", "w1.58a2-static"])
def test_all_that_layers_may_give(recipe: str) -> None:
    program = integer_only(static_net.program(recipe, dynamic=True))
    art, x = fewbit.compile(program, name="net"), static_net.inputs(3)
    np.testing.assert_array_equal(art(x), program.run(x)[0])


def test_products_requantize_their_sums() -> None:
    """Every layer but those whose sums a residual adds up, and the last, which gives floats."""
    text = lower(whole("resnet8", "w8a8-static"), "kernel")
    assert len(re.findall(r"kernel\.conv2d.* multiplier\(", text)) == 4
    behind_sums = [line for line in text.splitlines() if "mico.requantize" in line]
    assert len(behind_sums) == 3
    assert text.count("mico.relu(") == 4


def test_pooling_is_of_bytes() -> None:
    text = lower(whole("lenet", "w8a8-static"), "kernel")
    assert re.search(r"kernel\.pool2d.*!mico\.int<8>", text)
    assert "mico.requantize" not in text
    assert "mico.relu" not in text


def test_layers_that_share_a_weight_have_their_own_multipliers() -> None:
    w = "dense<[[3, 1], [-2, 5]]>"
    few, sums = "tensor<2x2x!mico.int<8>>", "tensor<2x2xi32>"
    layer = f"({few}, {few}) -> {sums}"
    text = f"""
      mico.constant @w : {few} = {w}
      func.func @main(%x: {few}) -> {few} {{
        %w = mico.get_constant @w : {few}
        %m = arith.constant 0.25 : f32
        %n = arith.constant 0.75 : f32
        %0 = mico.bitlinear(%x, %w) {{weight_bits = 8, act_bits = 8}} : {layer}
        %1 = mico.requantize(%0, %m) : ({sums}, f32) -> {few}
        %2 = mico.bitlinear(%1, %w) {{weight_bits = 8, act_bits = 8}} : {layer}
        %3 = mico.requantize(%2, %n) : ({sums}, f32) -> {few}
        func.return %3 : {few}
      }}"""
    program = fewbit.Program.parse(text)
    x = np.array([[100, -128], [7, 50]], np.int8)
    np.testing.assert_array_equal(fewbit.compile(program, name="two")(x), program.run(x)[0])
