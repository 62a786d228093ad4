from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from tests.dialects.programs import OPS, functions
from tests.passes.conftest import RunPasses
from tests.passes.lowering import RANDOM, inputs_for, lower


@pytest.mark.parametrize("kind", ["mico.bitlinear", "mico.bitconv2d", "mico.bitconv1d"])
@RANDOM
@given(data=st.data())
def test_results_stay_within_rounding(kind: str, data: st.DataObject) -> None:
    function = data.draw(functions("main", OPS[kind]))
    module = ModuleOp([function])
    inputs = inputs_for(function, np.random.default_rng(data.draw(st.integers(0, 1000))))
    before = interpret(module, *inputs)
    after = interpret(lower(module, "select-kernels", "im2col"), *inputs)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)


def conv(x: str, w: str, y: str, attributes: str, epilogue: str = "", types: str = "") -> str:
    added = f", {types}" if types else ""
    arguments = "".join(f", %{i}: {type}" for i, type in enumerate(filter(None, types.split(", "))))
    return (
        f"func.func @main(%x: {x}, %w: {w}{arguments}) -> {y} {{\n"
        f"  %y = kernel.conv2d(%x, %w){epilogue} {{{attributes}}} : ({x}, {w}{added}) -> {y}\n"
        f"  func.return %y : {y}\n}}"
    )


def test_columns_are_gathered_and_multiplied(run_passes: RunPasses) -> None:
    text = conv(
        "tensor<?x9x9x4xf32>",
        "tensor<6x4x3x3xf32>",
        "tensor<?x5x5x6xf32>",
        "stride = [2, 2], padding = [1, 1, 1, 1], minimum = 0.0 : f64",
        " bias(%0) add(%1)",
        "tensor<6xf32>, tensor<?x5x5x6xf32>",
    )
    result = run_passes(text, "im2col")
    assert "kernel.conv2d" not in result
    assert "tensor.pad" in result
    assert "tensor<?x5x5x1x36xf32>" in result
    # The weight's channels last, the columns, the matmul, and what follows it.
    assert result.count("linalg.generic") == 4
    assert result.count("arith.mulf") == 1


def test_a_kernel_of_one_pixel_has_its_columns(run_passes: RunPasses) -> None:
    x, w, y = "tensor<?x9x9x4xf32>", "tensor<6x4x1x1xf32>", "tensor<?x9x9x6xf32>"
    result = run_passes(conv(x, w, y, "stride = [1, 1]"), "im2col")
    assert result.count("linalg.generic") == 2
    assert "tensor.pad" not in result


def test_strided_pixels_are_gathered(run_passes: RunPasses) -> None:
    x, w, y = "tensor<?x9x9x4xf32>", "tensor<6x4x1x1xf32>", "tensor<?x5x5x6xf32>"
    result = run_passes(conv(x, w, y, "stride = [2, 2]"), "im2col")
    assert result.count("linalg.generic") == 3


def test_groups_are_a_batch(run_passes: RunPasses) -> None:
    x, w, y = "tensor<?x9x9x4xf32>", "tensor<6x2x3x3xf32>", "tensor<?x7x7x6xf32>"
    result = run_passes(conv(x, w, y, "groups = 2 : i32, stride = [1, 1]"), "im2col")
    assert "tensor<?x7x7x2x18xf32>" in result
    assert "tensor<?x7x7x2x3xf32>" in result


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            conv(
                "tensor<?x9x9x4xf32>",
                "tensor<4x1x3x3xf32>",
                "tensor<?x7x7x4xf32>",
                "groups = 4 : i32, stride = [1, 1]",
            ),
            id="depthwise",
        ),
        pytest.param(
            conv(
                "tensor<?x9x9x4x!mico.int<8>>",
                "tensor<6x4x3x3x!mico.int<4>>",
                "tensor<?x7x7x6xi32>",
                "stride = [1, 1]",
            ),
            id="integers",
        ),
    ],
)
def test_left_as_it_is(run_passes: RunPasses, text: str) -> None:
    assert run_passes(text, "im2col") == run_passes(text, "canonicalize")


def test_a_matrix_product_is_one_too() -> None:
    module = parse_module(
        "func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {\n"
        "  %y = kernel.matmul(%x, %w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>\n"
        "  func.return %y : tensor<?x4xf32>\n}"
    )
    names = [op.name for op in nested_ops(lower(module, "im2col"))]
    assert "kernel.matmul" not in names
    assert names.count("linalg.generic") == 1
