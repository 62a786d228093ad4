"""Named ops compute what the ops of the kernel dialect do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects import kernel
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from tests.dialects.programs import functions
from tests.dialects.test_kernel import OPS
from tests.passes.lowering import RANDOM, Array, assert_same, inputs_for, lower


def check(module: ModuleOp, *inputs: Array) -> list[str]:
    """Return the results stay; the names of the ops that there are now."""
    before = interpret(module, *inputs)
    after = interpret(lower(module, "name-windows", "lower-kernel"), *inputs)
    for new, old in zip(after, before, strict=True):
        assert_same(new, old)
    return [op.name for op in module.walk()]


@pytest.mark.parametrize("kind", ["kernel.conv2d", "kernel.pool2d"])
@settings(RANDOM, max_examples=25)
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    function = data.draw(functions("main", OPS[kind]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    inputs = inputs_for(function, rng)
    op = function.body.block.first_op
    if isinstance(op, kernel.Conv2dOp) and op.add is not None:
        shape = op.output_shape(inputs[0].shape, inputs[1].shape)
        inputs[list(function.body.block.args).index(op.add)] = rng.normal(size=shape).astype(  # pyright: ignore[reportArgumentType]
            np.float32
        )
    check(ModuleOp([function]), *inputs)


@pytest.mark.parametrize(
    ("channels", "groups", "outputs", "name"),
    [
        (6, 1, 4, "linalg.conv_2d_nhwc_hwcf"),
        (1, 1, 4, "linalg.conv_2d_nhwc_hwcf"),
        (6, 6, 6, "linalg.depthwise_conv_2d_nhwc_hwc"),
        (6, 2, 4, "linalg.generic"),
        (1, 1, 1, "linalg.conv_2d_nhwc_hwcf"),
    ],
)
@pytest.mark.parametrize("element", ["f32", "i8"])
def test_convolutions(element: str, channels: int, groups: int, outputs: int, name: str) -> None:
    x, w, y = (
        f"tensor<?x9x8x{channels}x{element}>",
        f"tensor<{outputs}x{channels // groups}x3x2x{element}>",
        f"tensor<?x4x6x{outputs}x{'f32' if element == 'f32' else 'i32'}>",
    )
    module = parse_module(
        f"func.func @main(%x: {x}, %w: {w}) -> {y} {{\n"
        f"  %y = kernel.conv2d(%x, %w) {{stride = [2, 1], padding = [1, 2, 0, 1],"
        f" dilation = [2, 3], groups = {groups}}} : ({x}, {w}) -> {y}\n"
        f"  func.return %y : {y}\n}}"
    )
    rng = np.random.default_rng(0)
    dtype = np.float32 if element == "f32" else np.int8
    shapes = (2, 9, 8, channels), (outputs, channels // groups, 3, 2)
    names = check(module, *(rng.integers(-128, 128, shape).astype(dtype) for shape in shapes))
    assert name in names


def test_pooling_has_a_name() -> None:
    x, y = "tensor<1x8x8x3xf32>", "tensor<1x4x4x3xf32>"
    for kind, name in (("max", "linalg.pooling_nhwc_max"), ("average", "linalg.pooling_nhwc_sum")):
        module = parse_module(
            f"func.func @main(%x: {x}) -> {y} {{\n"
            f'  %y = kernel.pool2d(%x) {{kind = "{kind}", kernel_size = [2, 2]}} : ({x}) -> {y}\n'
            f"  func.return %y : {y}\n}}"
        )
        rng = np.random.default_rng(0)
        assert name in check(module, rng.standard_normal((1, 8, 8, 3)).astype(np.float32))
