from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.dialects.traits import Elementwise
from fewbit.ir.parse import parse_module
from tests.dialects.programs import with_property
from tests.passes.lowering import RANDOM, check, check_random


@pytest.mark.parametrize("kind", [*with_property(Elementwise), "mico.softmax"])
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-elementwise")


@pytest.mark.parametrize("op", ["gelu", "silu", "relu6", "softmax"])
def test_extreme_inputs(op: str) -> None:
    module = parse_module(
        f"func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {{\n"
        f"  %y = mico.{op}(%x) : (tensor<2x5xf32>) -> tensor<2x5xf32>\n"
        f"  func.return %y : tensor<2x5xf32>\n}}"
    )
    x = np.array([[-90, -1e-30, 0, 1e-30, 90], [-1e4, -3, 1, 3, 1e4]], np.float32)
    check(module, x)


def test_approximate_gelu_keeps_its_digits_for_negative_inputs() -> None:
    module = parse_module(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %y = mico.gelu(%x) {approximate = "tanh"} : (tensor<4xf32>) -> tensor<4xf32>\n'
        "  func.return %y : tensor<4xf32>\n}"
    )
    x = np.array([-5, -4, -3, -2], np.float32)
    (y,) = check(module, x)
    wide = x.astype(np.float64)
    inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    np.testing.assert_allclose(y, wide / (1 + np.exp(-2 * inner)), rtol=1e-5)


def test_integers_keep_their_type() -> None:
    module = parse_module(
        "func.func @main(%x: tensor<3x!mico.int<3>>) -> tensor<3x!mico.int<3>> {\n"
        "  %y = mico.relu(%x) : (tensor<3x!mico.int<3>>) -> tensor<3x!mico.int<3>>\n"
        "  func.return %y : tensor<3x!mico.int<3>>\n}"
    )
    (y,) = check(module, np.array([-4, 0, 3], np.int8))
    assert y.tolist() == [0, 0, 3]
