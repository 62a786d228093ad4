from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument

from fewbit.dialects import kernel
from fewbit.interpreter import interpret
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from tests.dialects.programs import functions
from tests.dialects.test_kernel import OPS
from tests.passes.lowering import RANDOM, Array, assert_same, inputs_for, lower


def check(module: ModuleOp, *inputs: Array) -> None:
    """Check that integers keep their bits; floats may be summed in another order."""
    exact = not any(
        isinstance(op, kernel.Pool2dOp)
        or (isinstance(op, kernel.ContractionOp) and (op.is_float or op.activation is not None))
        for op in module.walk()
    )
    before = interpret(module, *inputs)
    after = interpret(lower(module, "lower-kernel"), *inputs)
    assert not any(op.dialect_name() == "kernel" for op in module.walk())
    for new, old in zip(after, before, strict=True):
        assert_same(new, old, tolerance=0 if exact else 1e-5)


@pytest.mark.parametrize("kind", OPS)
@settings(RANDOM, max_examples=25)
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    function = data.draw(functions("main", OPS[kind]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    inputs = inputs_for(function, rng)
    op = function.body.block.first_op
    if isinstance(op, kernel.ContractionOp) and isinstance(op.add, BlockArgument):
        # Of sizes known only at run time, the result's follow from the others.
        shape = op.output_shape(inputs[0].shape, inputs[1].shape)
        inputs[op.add.index] = rng.normal(size=shape).astype(np.float32)
    check(ModuleOp([function]), *inputs)


@pytest.mark.parametrize("element", ["f32", "i8"])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("outputs", [6, 12])
def test_convolutions_of_any_size(element: str, groups: int, outputs: int) -> None:
    x, w, y = (
        f"tensor<?x?x?x6x{element}>",
        f"tensor<{outputs}x{6 // groups}x3x2x{element}>",
        f"tensor<?x?x?x{outputs}x{'f32' if element == 'f32' else 'i32'}>",
    )
    module = parse_module(
        f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
        f"  %y = kernel.conv2d(%x, %w) {{stride = [2, 1], padding = [1, 2, 0, 1],"
        f" dilation = [2, 3], groups = {groups}}} : ({x}, {w}) -> {y}\n"
        f"  func.return %y : {y}\n}}"
    )
    rng = np.random.default_rng(0)
    dtype = np.float32 if element == "f32" else np.int8
    shapes = (2, 9, 8, 6), (outputs, 6 // groups, 3, 2)
    check(module, *(rng.integers(-128, 128, shape).astype(dtype) for shape in shapes))


@pytest.mark.parametrize("rows", [7, 8, 9, 10])
@pytest.mark.parametrize("counted", ["true", "false"])
@pytest.mark.parametrize("kind", ["max", "average"])
def test_pooling_of_any_size_with_ceil_mode(kind: str, counted: str, rows: int) -> None:
    x, y = "tensor<?x?x9x2xf32>", "tensor<?x?x5x2xf32>"
    module = parse_module(
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f'  %y = kernel.pool2d(%x) {{kind = "{kind}", kernel_size = [3, 3], stride = [2, 2],'
        f" padding = [1, 1], ceil_mode = true, count_include_pad = {counted}}} : ({x}) -> {y}\n"
        f"  func.return %y : {y}\n}}"
    )
    # Below zero everywhere: padding must not win a maximum.
    check(module, -np.random.default_rng(0).random((2, rows, 9, 2), np.float32))


def test_the_layer_s_name_stays_on_all_that_it_becomes() -> None:
    x, w, y = "tensor<2x8xf32>", "tensor<4x8xf32>", "tensor<2x4xf32>"
    module = parse_module(
        f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
        f'  %y = kernel.matmul(%x, %w) {{minimum = 0.0}} : ({x}, {w}) -> {y} loc("model.fc")\n'
        f"  func.return %y : {y}\n}}"
    )
    lower(module, "lower-kernel")
    ops = [op for op in module.walk() if isinstance(op, linalg.GenericOp)]
    assert len(ops) == 2
    assert {place_of(op).layer for op in ops} == {"model.fc"}


@pytest.mark.parametrize(
    "op", ["silu(%p)", "gelu(%p)", 'gelu(%p) {approximate = "tanh"}'], ids=["silu", "gelu", "tanh"]
)
def test_an_activation_is_the_same_loop_within_a_product_and_behind_it(op: str) -> None:
    x, w, y = "tensor<3x8xi8>", "tensor<4x8xi8>", "tensor<3x4xf32>"
    text = (
        f"func.func @main(%x: {x}, %w: {w}, %s: f32) -> {y} {{\n"
        f"  %p = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%s) : ({x}, {w}, f32, f32) -> {y}\n"
        f"  %y = mico.{op} : ({y}) -> {y}\n  func.return %y : {y}\n}}"
    )
    rng = np.random.default_rng(0)
    given = [rng.integers(-128, 128, shape).astype(np.int8) for shape in ((3, 8), (4, 8))]
    apart, fused = (
        lower(parse_module(text), *first, "lower-kernel", "lower-elementwise", "expand-math")
        for first in ((), ("fuse-epilogue",))
    )
    scale = np.float32(0.01)
    found, expected = (interpret(module, *given, scale)[0] for module in (fused, apart))
    np.testing.assert_array_equal(found, expected)
