from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from tests.passes.lowering import RANDOM, check, check_random


@pytest.mark.parametrize(
    "kind", ["mico.quantize", "mico.dequantize", "mico.requantize", "mico.weight_quant"]
)
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-quantization")


def requantization(multiplier: str, clause: str, few: str) -> str:
    arguments = f"%a: tensor<5xi32>, %m: {multiplier}" + (", %s: i32" if clause else "")
    types = f"tensor<5xi32>, {multiplier}" + (", i32" if clause else "")
    return (
        f"func.func @main({arguments}) -> tensor<5x{few}> {{\n"
        f"  %y = mico.requantize(%a, %m) {clause} {{axis = 0}} : ({types}) -> tensor<5x{few}>\n"
        f"  func.return %y : tensor<5x{few}>\n}}"
    )


def test_fixed_point_rounds_ties_to_even() -> None:
    module = parse_module(requantization("i32", "shift(%s)", "!mico.int<8>"))
    acc = np.array([1, 3, 5, -1, -3], np.int32)
    (y,) = check(module, acc, np.int32(1), np.int32(1))
    assert y.tolist() == [0, 2, 2, 0, -2]


def test_one_bit_takes_the_sign_of_a_product_that_underflows() -> None:
    module = parse_module(requantization("f32", "", "!mico.int<1>"))
    acc = np.array([1, -1, 0, 5, -7], np.int32)
    (y,) = check(module, acc, np.float32(1e-45))
    assert y.tolist() == [1, -1, 1, 1, -1]


def test_dequantizes_groups_of_a_weight() -> None:
    module = parse_module(
        "func.func @main(%u: tensor<2x2x3x!mico.int<4>>, %s: tensor<2x3xf32>, %z: tensor<2x3xi32>)"
        " -> tensor<2x2x3xf32> {\n"
        "  %y = mico.dequantize(%u, %s) zero_point(%z)"
        " : (tensor<2x2x3x!mico.int<4>>, tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x2x3xf32>\n"
        "  func.return %y : tensor<2x2x3xf32>\n}"
    )
    rng = np.random.default_rng(0)
    u = rng.integers(-8, 8, (2, 2, 3)).astype(np.int8)
    s, z = rng.random((2, 3), np.float32), rng.integers(-8, 8, (2, 3)).astype(np.int32)
    (y,) = check(module, u, s, z)
    expected = (u.reshape(2, 3, 2) - z[..., None]).astype(np.float32) * s[..., None]
    np.testing.assert_array_equal(y, expected.reshape(2, 2, 3))
