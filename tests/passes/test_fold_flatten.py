from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fewbit.dialects import mico
from fewbit.numerics import quantize_weight
from fewbit.pipeline.compilation import run_passes
from fewbit.program.program import Program
from tests.passes.lowering import constants, hexadecimal

X, IMAGE = "tensor<?x2x3x4xf32>", "tensor<?x4x2x3xf32>"
FLAT, Y, W = "tensor<?x24xf32>", "tensor<?x5xf32>", "tensor<5x24xf32>"
U, V = "tensor<?x24x!mico.int<8>>", "tensor<5x24x!mico.int<3>>"

TRANSPOSED = f"%t = mico.transpose(%x) {{permutation = [0, 3, 1, 2]}} : ({X}) -> {IMAGE}\n"
FLATTENED = f"%f = mico.flatten(%t) : ({IMAGE}) -> {FLAT}\n"
READ = f"%w = mico.get_constant @fc.weight : {W}\n"
MATMUL = f"%y = kernel.matmul(%f, %w) : ({FLAT}, {W}) -> {Y}\n"


def program(body: str, result: str = Y) -> Program:
    weight = np.random.default_rng(0).normal(size=(5, 24)).astype(np.float32)
    text = f"mico.constant @fc.weight : {W} = {hexadecimal(weight)}\n"
    text += constants("few.weight", quantize_weight(weight, 3))
    text += f"func.func @main(%x: {X}) -> {result} {{\n{body}func.return %y : {result}\n}}"
    return Program.parse(text)


def results(program: Program) -> npt.NDArray[Any]:
    x = np.random.default_rng(1).normal(size=(3, 2, 3, 4)).astype(np.float32)
    (y,) = program.run(x)
    return y


def transposes(program: Program) -> int:
    return sum(isinstance(op, mico.TransposeOp) for op in program.module.walk())


FOLDED = [
    pytest.param(TRANSPOSED + FLATTENED + READ + MATMUL, id="flatten"),
    pytest.param(
        TRANSPOSED
        + f"%f = mico.reshape(%t) {{shape = [-1, 24]}} : ({IMAGE}) -> {FLAT}\n"
        + READ
        + MATMUL,
        id="reshape",
    ),
    pytest.param(
        TRANSPOSED
        + FLATTENED.replace("%f", "%g")
        + f"%f = mico.gelu(%g) : ({FLAT}) -> {FLAT}\n"
        + READ
        + MATMUL,
        id="function between",
    ),
]


@pytest.mark.parametrize("body", FOLDED)
def test_folded(body: str) -> None:
    before = program(body)
    after = run_passes(before, "fold-flatten")
    after.verify()
    assert transposes(after) == 0
    assert "@fc.weight" in after.text()
    np.testing.assert_allclose(results(after), results(before), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("quantize", ["mico.activation_quant", "kernel.quantize_rows"])
def test_few_bit_weight_behind_quantization(quantize: str) -> None:
    acc = "tensor<?x5xi32>"
    before = program(
        TRANSPOSED
        + FLATTENED
        + f"%u, %s = {quantize}(%f) {{bits = 8}} : ({FLAT}) -> ({U}, tensor<?xf32>)\n"
        + f"%w = mico.get_constant @few.weight : {V}\n"
        + f"%y = kernel.matmul(%u, %w) : ({U}, {V}) -> {acc}\n",
        acc,
    )
    after = run_passes(before, "fold-flatten")
    after.verify()
    assert transposes(after) == 0
    np.testing.assert_array_equal(results(after), results(before))


def test_groups_that_have_scales_are_of_neighbours() -> None:
    scales = "%s = arith.constant dense<0.5> : tensor<5x4xf32>\n"
    body = (
        TRANSPOSED
        + FLATTENED
        + f"%u, %t2 = kernel.quantize_rows(%f) {{bits = 8}} : ({FLAT}) -> ({U}, tensor<?xf32>)\n"
        + f"%w = mico.get_constant @few.weight : {V}\n"
        + scales
        + "%y = kernel.matmul(%u, %w) x_scale(%t2) weight_scale(%s)"
        + f" : ({U}, {V}, tensor<?xf32>, tensor<5x4xf32>) -> {Y}\n"
    )
    after = run_passes(program(body), "fold-flatten")
    assert transposes(after) == 1


def test_a_weight_that_others_read_stays_as_it_is() -> None:
    before = program(
        TRANSPOSED
        + FLATTENED
        + READ
        + MATMUL.replace("%y", "%z")
        + f"%v = mico.get_constant @fc.weight : {W}\n"
        + f"%a = mico.reshape(%x) {{shape = [-1, 24]}} : ({X}) -> {FLAT}\n"
        + f"%b = kernel.matmul(%a, %v) : ({FLAT}, {W}) -> {Y}\n"
        + f"%y = mico.add(%z, %b) : ({Y}, {Y}) -> {Y}\n"
    )
    after = run_passes(before, "fold-flatten")
    after.verify()
    assert transposes(after) == 0
    assert "@fc.weight.1" in after.text()
    np.testing.assert_allclose(results(after), results(before), rtol=1e-5, atol=1e-5)


LEFT = [
    pytest.param(
        TRANSPOSED + FLATTENED + READ + MATMUL.replace("%y", "%z")
        + f"%v = kernel.matmul(%f, %w) : ({FLAT}, {W}) -> {Y}\n"
        + f"%y = mico.add(%z, %v) : ({Y}, {Y}) -> {Y}\n",
        id="an image that others read",
    ),
    pytest.param(
        TRANSPOSED
        + FLATTENED.replace("%f", "%g")
        + f"%f = mico.softmax(%g) : ({FLAT}) -> {FLAT}\n"
        + READ
        + MATMUL,
        id="a function that is not for each feature",
    ),
]  # fmt: skip


@pytest.mark.parametrize("body", LEFT)
def test_left(body: str) -> None:
    after = run_passes(program(body), "fold-flatten")
    assert transposes(after) == 1
