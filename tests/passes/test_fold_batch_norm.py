from __future__ import annotations

import re

import numpy as np
import pytest

from fewbit.dialects import mico
from fewbit.ir.locations import place_of
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.program.program import Program
from fewbit.program.store import WeightStore

X, Y = "tensor<?x3x6x6xf32>", "tensor<?x4x6x6xf32>"
C, W = "tensor<4xf32>", "tensor<4x3x3x3xf32>"
NORM = ("norm.weight", "norm.bias", "norm.mean", "norm.variance")


def program(body: str, result: str = Y, x: str = X, w: str = W) -> Program:
    """Return a function of %x that ends in %y, with constants in a store."""
    rng = np.random.default_rng(0)
    store = WeightStore()
    constants: list[str] = []
    for name, type in (("conv.weight", w), ("conv.bias", C), *((n, C) for n in NORM)):
        if f"@{name}" not in body:
            continue
        shape = [int(extent) for extent in re.findall(r"\d+(?=x)", type)]
        ref = store.add(name, (rng.random(shape) + 0.1).astype(np.float32))
        constants.append(f'mico.constant @{name} : {type} = #mico.ref<"{name}", "{ref.sha256}">')
    text = f"func.func @main(%x: {x}) -> {result} {{\n{body}func.return %y : {result}\n}}"
    return Program.parse("\n".join((*constants, text)), store)


def conv(result: str = "%c", constants: str = "@conv.weight") -> str:
    return f"{result} = mico.bitconv2d(%x, {constants}) {{padding = [1, 1]}} : ({X}) -> {Y}\n"


def norm(value: str = "%c", result: str = "%y") -> str:
    names = ", ".join(f"@{name}" for name in NORM)
    return f"{result} = mico.batch_norm({value}, {names}) {{eps = 0.001}} : ({Y}) -> {Y}\n"


def names_of(program: Program) -> set[str]:
    ops = program.module.walk()
    return {op.sym_name.data for op in ops if isinstance(op, mico.ConstantOp)}


def norms(program: Program) -> int:
    return sum(isinstance(op, mico.BatchNormOp) for op in program.module.walk())


def image() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)


def assert_same(before: Program, after: Program, x: np.ndarray) -> None:
    after.verify()
    (old,), (new,) = before.run(x), after.run(x)
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("constants", ["@conv.weight", "@conv.weight, @conv.bias"])
def test_convolution(constants: str) -> None:
    before = program(conv(constants=constants) + norm())
    after = fold_batch_norm(before)
    assert norms(after) == 0
    assert names_of(after) == {"conv.weight", "conv.bias"}
    assert_same(before, after, image())


def test_rounded_once_from_float64() -> None:
    before = program(conv(constants="@conv.weight, @conv.bias") + norm())
    after = fold_batch_norm(before)
    w, b, s, o, m, v = (
        before.store[name].astype(np.float64) for name in ("conv.weight", "conv.bias", *NORM)
    )
    factor = s / np.sqrt(v + 0.001)
    (layer,) = (op for op in after.module.walk() if isinstance(op, mico.BitConv2dOp))
    results = {
        op.sym_name.data: op for op in after.module.walk() if isinstance(op, mico.ConstantOp)
    }
    weight, bias = (results[name].value for name in ("conv.weight", "conv.bias"))
    assert isinstance(weight, mico.RefAttr)
    assert isinstance(bias, mico.RefAttr)
    expected = (w * factor[:, None, None, None]).astype(np.float32)
    np.testing.assert_array_equal(after.store[weight.key], expected)
    np.testing.assert_array_equal(after.store[bias.key], ((b - m) * factor + o).astype(np.float32))
    assert layer.bias is not None


def test_linear() -> None:
    x, y = "tensor<?x5xf32>", "tensor<?x4xf32>"
    names = ", ".join(f"@{name}" for name in NORM)
    before = program(
        f"%c = mico.bitlinear(%x, @conv.weight) : ({x}) -> {y}\n"
        f"%y = mico.batch_norm(%c, {names}) : ({y}) -> {y}\n",
        y,
        x,
        "tensor<4x5xf32>",
    )
    after = fold_batch_norm(before)
    assert norms(after) == 0
    assert_same(before, after, np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32))


def test_a_shared_weight_is_not_changed_for_the_other_layer() -> None:
    before = program(
        conv("%c") + conv("%d") + norm("%c", "%n") + f"%y = mico.add(%n, %d) : ({Y}, {Y}) -> {Y}\n"
    )
    after = fold_batch_norm(before)
    assert norms(after) == 0
    assert names_of(after) >= {"conv.weight", "conv.weight.1", "conv.bias"}
    assert_same(before, after, image())


def test_a_result_that_is_read_elsewhere_keeps_its_norm() -> None:
    before = program(conv() + norm("%c", "%n") + f"%y = mico.add(%n, %c) : ({Y}, {Y}) -> {Y}\n")
    assert norms(fold_batch_norm(before)) == 1


def test_a_quantized_layer_keeps_its_norm() -> None:
    layer = conv().replace("padding", "act_bits = 8, padding")
    assert norms(fold_batch_norm(program(layer + norm()))) == 1


def test_what_is_given_stays_as_it_is() -> None:
    before = program(conv() + norm())
    text, keys = before.text(), set(before.store)
    fold_batch_norm(before)
    assert before.text() == text
    assert set(before.store) == keys


def test_the_layer_keeps_its_name() -> None:
    named = conv().replace(f"-> {Y}\n", f'-> {Y} loc("stem.conv")\n')
    after = fold_batch_norm(program(named + norm()))
    (layer,) = (op for op in after.module.walk() if isinstance(op, mico.BitConv2dOp))
    assert place_of(layer).layer == "stem.conv"
