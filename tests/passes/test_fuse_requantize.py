from __future__ import annotations

import numpy as np
import pytest

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from tests.passes.conftest import RunPasses
from tests.passes.lowering import lower

X, W, B, Y = "tensor<64x8xi8>", "tensor<4x8xi8>", "tensor<4xi32>", "tensor<64x4xi32>"


def function(width: str, multiplier: str = "0.005 : f32", clauses: str = "", more: str = "") -> str:
    few = f"tensor<64x4x{width}>"
    kind = multiplier.split()[-1]
    return f"""func.func @main(%x: {X}, %w: {W}, %b: {B}, %given: f32) -> ({few}, {Y}) {{
      %p = kernel.matmul(%x, %w) bias(%b) : ({X}, {W}, {B}) -> {Y}
      %number = arith.constant 1 : i32
      %m = arith.constant {multiplier}
      %q = mico.requantize(%p, %m){clauses} : ({Y}, {kind}{more}) -> {few}
      %r = mico.relu(%q) : ({few}) -> {few}
      func.return %r, %p : {few}, {Y}
    }}"""


FUSED = ["!mico.int<8>", "!mico.int<4>", "!mico.int<2>", "!mico.ternary"]


@pytest.mark.parametrize("multiplier", ["0.005", "0.5", "1.0e38", "-0.005", "1.0e-40"])
@pytest.mark.parametrize("width", FUSED)
def test_fused_with_the_same_bits(run_passes: RunPasses, width: str, multiplier: str) -> None:
    text = function(width, f"{multiplier} : f32")
    after = run_passes(text, "fuse-requantize")
    assert "multiplier(" in after
    assert "minimum = 0" in after
    assert "mico.requantize" not in after
    assert "mico.relu" not in after
    rng = np.random.default_rng(0)
    inputs = (
        rng.integers(-128, 128, (64, 8)).astype(np.int8),
        rng.integers(-128, 128, (4, 8)).astype(np.int8),
        np.array([0, -5000, 100_000, -(1 << 30)], np.int32),
        np.float32(1),
    )
    expected = interpret(parse_module(text), *inputs)
    for passes in (["fuse-requantize"], ["fuse-requantize", "lower-kernel"]):
        for made, right in zip(
            interpret(lower(parse_module(text), *passes), *inputs), expected, strict=True
        ):
            np.testing.assert_array_equal(made, right)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            function("!mico.int<1>").replace("mico.relu(%q)", "mico.reshape(%q) {shape = [64, 4]}"),
            id="signs",
        ),
        pytest.param(
            function("!mico.int<8>").replace("(%p, %m)", "(%p, %given)"),
            id="a multiplier that a run gives",
        ),
        pytest.param(
            function("!mico.int<8>", clauses=" zero_point(%number)", more=", i32"),
            id="a zero point",
        ),
        pytest.param(function("!mico.int<8>", "3 : i32", " shift(%number)", ", i32"), id="a shift"),
    ],
)
def test_left(run_passes: RunPasses, text: str) -> None:
    assert "mico.requantize" in run_passes(text, "fuse-requantize")


def test_multipliers_along_another_dimension_are_left(run_passes: RunPasses) -> None:
    text = """
      mico.constant @m : tensor<4xf32> = dense<0.5>
      func.func @main(%x: tensor<4x8xi8>, %w: tensor<4x8xi8>) -> tensor<4x4x!mico.int<8>> {
        %p = kernel.matmul(%x, %w) : (tensor<4x8xi8>, tensor<4x8xi8>) -> tensor<4x4xi32>
        %m = mico.get_constant @m : tensor<4xf32>
        %q = mico.requantize(%p, %m) {axis = AXIS}
          : (tensor<4x4xi32>, tensor<4xf32>) -> tensor<4x4x!mico.int<8>>
        func.return %q : tensor<4x4x!mico.int<8>>
      }"""
    assert "mico.requantize" in run_passes(text.replace("AXIS", "0"), "fuse-requantize")
    assert "mico.requantize" not in run_passes(text.replace("AXIS", "1"), "fuse-requantize")
