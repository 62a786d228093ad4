from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from fewbit.numerics import WIDTHS, Width, bitconv2d, quantize_weight
from tests.passes.lowering import RANDOM, check, check_random, constants

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape, dtype=np.float32)


def program(weight: str, x: str, y: str, attributes: str) -> str:
    return weight + (
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f"  %y = mico.bitconv2d(%x, @w) {{{attributes}}} : ({x}) -> {y}\n"
        f"  func.return %y : {y}\n}}\n"
    )


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_every_width_is_exact(width: Width) -> None:
    """K is 18 or 25: no multiple of what a byte or a word holds."""
    for channels, kernel in ((2, 3), (1, 5)):
        w = quantize_weight(normal(4, channels, kernel, kernel), width)
        x = normal(2, channels, 8, 8)
        attributes = "act_bits = 8, padding = [1, 0, 2, 1], stride = [2, 1]"
        rows, columns = (8 + 1 - kernel) // 2 + 1, 8 + 3 - kernel + 1
        text = program(
            constants("w", w),
            f"tensor<2x{channels}x8x8xf32>",
            f"tensor<2x4x{rows}x{columns}xf32>",
            attributes,
        )
        (y,) = check(parse_module(text), x)
        sides = ((1, 0), (2, 1))
        expected = bitconv2d(x, w, act_width=8, stride=(2, 1), padding=sides)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("group", [1, 2, 3, 6, 9, 18])
def test_groups_of_scales_begin_anywhere_in_the_window(group: int) -> None:
    w = quantize_weight(normal(6, 2, 3, 3), 4, granularity="group", group=group)
    text = program(
        constants("w", w),
        "tensor<?x4x?x7xf32>",
        "tensor<?x6x?x7xf32>",
        "act_bits = 8, groups = 2, padding = [1, 1], dilation = [1, 1]",
    )
    check(parse_module(text), normal(2, 4, 6, 7))


def test_padding_is_zero_whatever_the_zero_points() -> None:
    w = quantize_weight(normal(3, 1, 2, 2) + 1, 4, symmetric=False)
    x = np.zeros((1, 1, 3, 3), np.float32)
    text = constants("w", w) + (
        "func.func @main(%x: tensor<1x1x3x3xf32>, %s: f32, %z: i32) -> tensor<1x3x4x4xf32> {\n"
        "  %y = mico.bitconv2d(%x, @w) act_scale(%s) act_zero_point(%z)"
        " {act_bits = 8, padding = [1, 1]}"
        " : (tensor<1x1x3x3xf32>, f32, i32) -> tensor<1x3x4x4xf32>\n"
        "  func.return %y : tensor<1x3x4x4xf32>\n}"
    )
    (y,) = check(parse_module(text), x, np.float32(0.5), np.int32(7))
    np.testing.assert_array_equal(y, np.zeros_like(y))


@pytest.mark.parametrize("kind", ["mico.bitconv1d", "mico.bitconv2d"])
@RANDOM
@given(data=st.data())
def test_random_convolutions(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-bit-conv")
