from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from fewbit.numerics import WIDTHS, Granularity, Width, bitlinear, quantize_weight
from tests.passes.lowering import (
    RANDOM,
    check,
    check_random,
    constants,
    element_text,
    mico_ops,
)

PASSES = (
    "lower-activation-quant",
    "lower-bit-linear",
    "unpack-weights",
    "lower-few-bit-types",
)
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


def act_bits(width: Width) -> str:
    return "!mico.ternary" if width.is_ternary else str(width.bits)


def program(weight: str, n: int, k: int, attributes: str, element: str = "f32") -> str:
    x, y = f"tensor<?x{k}x{element}>", f"tensor<?x{n}x{element}>"
    return weight + (
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f"  %y = mico.bitlinear(%x, @w) {{{attributes}}} : ({x}) -> {y}\n"
        f"  func.return %y : {y}\n}}\n"
    )


@pytest.mark.parametrize("act", WIDTHS, ids=str)
def test_every_pair_of_widths_is_exact(act: Width) -> None:
    for width in WIDTHS:
        w = quantize_weight(normal(5, 25), width)
        x = normal(3, 25)
        module = parse_module(program(constants("w", w), 5, 25, f"act_bits = {act_bits(act)}"))
        (y,) = check(module, x, passes=PASSES)
        np.testing.assert_array_equal(y, bitlinear(x, w, act_width=act))
        assert mico_ops(module) == {"mico.constant", "mico.get_constant"}


@pytest.mark.parametrize("granularity", ["tensor", "channel", "group"])
@pytest.mark.parametrize("symmetric", [True, False])
def test_granularities(granularity: Granularity, symmetric: bool) -> None:
    group = 4 if granularity == "group" else None
    w = quantize_weight(normal(6, 12), 4, granularity=granularity, group=group, symmetric=symmetric)
    for attributes in ("act_bits = 8", 'act_bits = 5, act_mode = "mean"', ""):
        module = parse_module(program(constants("w", w), 6, 12, attributes))
        check(module, normal(3, 12))


def test_ties_and_zeros() -> None:
    w = quantize_weight(np.array([[0.5, 1.5, -2.5, 127.0], [0, 0, 0, 0]], np.float32), 8)
    x = np.array([[0.5, 1.5, -2.5, 127.0], [0, 0, 0, 0], [-0.5, 3.5, 4.5, -127]], np.float32)
    for width in WIDTHS:
        text = program(constants("w", w), 2, 4, f"act_bits = {act_bits(width)}")
        (y,) = check(parse_module(text), x, passes=PASSES)
        np.testing.assert_array_equal(y, bitlinear(x, w, act_width=width))


@pytest.mark.parametrize("attributes", ["", "act_bits = 8"])
def test_half_precision_is_computed_in_f32(attributes: str) -> None:
    w = quantize_weight(normal(4, 9), 8)
    text = program(constants("w", w), 4, 9, attributes, "f16")
    check(parse_module(text), normal(2, 9).astype(np.float16))


def test_alone_the_pass_takes_out_the_quantization() -> None:
    w = quantize_weight(normal(4, 9), 3)
    module = parse_module(program(constants("w", w), 4, 9, "act_bits = 8"))
    check(module, normal(2, 9), passes=("lower-bit-linear",))
    assert "mico.activation_quant" in mico_ops(module)
    assert "mico.bitlinear" not in mico_ops(module)


def test_integers_flow_from_layer_to_layer() -> None:
    first, second = quantize_weight(normal(6, 8), 4), quantize_weight(normal(3, 6), 8)
    few = element_text(Width.of(8))
    text = (
        constants("w", first)
        + constants("v", second)
        + f"""
mico.constant @b : tensor<6xi32> = dense<[1, -2, 3, -4, 5, -6]>
mico.constant @m : tensor<6xf32> = dense<[0.01, 0.02, 0.03, 0.04, 0.05, 0.06]>
func.func @main(%x: tensor<2x8x{few}>, %s: f32) -> tensor<2x3xf32> {{
  %w = mico.get_constant @w : tensor<6x8x!mico.int<4>>
  %b = mico.get_constant @b : tensor<6xi32>
  %acc = mico.bitlinear(%x, %w, %b) : (tensor<2x8x{few}>, tensor<6x8x!mico.int<4>>, tensor<6xi32>) -> tensor<2x6xi32>
  %m = mico.get_constant @m : tensor<6xf32>
  %u = mico.requantize(%acc, %m) : (tensor<2x6xi32>, tensor<6xf32>) -> tensor<2x6x{few}>
  %r = mico.relu(%u) : (tensor<2x6x{few}>) -> tensor<2x6x{few}>
  %y = mico.bitlinear(%r, @v) act_scale(%s) : (tensor<2x6x{few}>, f32) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}}
"""
    )
    module = parse_module(text)
    x = RNG.integers(-128, 128, (2, 8)).astype(np.int8)
    check(module, x, np.float32(0.1))


@pytest.mark.parametrize("kind", ["mico.bitlinear", "mico.bitlinear (accumulators)"])
@RANDOM
@given(data=st.data())
def test_random_layers(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-bit-linear")
