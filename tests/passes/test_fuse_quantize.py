from __future__ import annotations

import numpy as np
import pytest

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from tests.passes.conftest import RunPasses
from tests.passes.lowering import lower

X, W, T, Y = "tensor<5x8xi8>", "tensor<4x8xi8>", "tensor<4xf32>", "tensor<5x4xf32>"


def function(width: str, scale: str = "%step", zero_point: bool = False) -> str:
    few = f"tensor<5x4x{width}>"
    clause, type = (" zero_point(%zero)", ", i32") if zero_point else ("", "")
    return f"""func.func @main(%x: {X}, %w: {W}, %t: {T}, %given: f32) -> ({few}, {Y}) {{
      %s = arith.constant 0.5 : f32
      %step = arith.constant 0.37 : f32
      %zero = arith.constant 1 : i32
      %p = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) : ({X}, {W}, f32, {T}) -> {Y}
      %q = mico.quantize(%p, {scale}){clause} : ({Y}, f32{type}) -> {few}
      func.return %q, %p : {few}, {Y}
    }}"""


FUSED = ["!mico.int<8>", "!mico.int<4>", "!mico.int<2>", "!mico.ternary"]


@pytest.mark.parametrize("width", FUSED)
def test_fused_with_the_same_bits(run_passes: RunPasses, width: str) -> None:
    text = function(width)
    after = run_passes(text, "fuse-quantize")
    assert "step = " in after
    assert "mico.quantize" not in after
    rng = np.random.default_rng(0)
    inputs = (
        rng.integers(-128, 128, (5, 8)).astype(np.int8),
        rng.integers(-128, 128, (4, 8)).astype(np.int8),
        rng.random(4).astype(np.float32) * np.float32(0.01),
        np.float32(1),
    )
    expected = interpret(parse_module(text), *inputs)
    for passes in (["fuse-quantize"], ["fuse-quantize", "lower-kernel"]):
        for made, right in zip(
            interpret(lower(parse_module(text), *passes), *inputs), expected, strict=True
        ):
            np.testing.assert_array_equal(made, right)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(function("!mico.int<1>"), id="signs"),
        pytest.param(function("!mico.int<8>", "%given"), id="a step that a run gives"),
        pytest.param(function("!mico.int<8>", zero_point=True), id="a zero point"),
        pytest.param(function("!mico.int<8>").replace("0.37", "1.0e-42"), id="a tiny step"),
    ],
)
def test_left(run_passes: RunPasses, text: str) -> None:
    assert "mico.quantize" in run_passes(text, "fuse-quantize")
