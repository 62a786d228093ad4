from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects import mico
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from fewbit.numerics import quantize_weight
from tests.passes.lowering import (
    RANDOM,
    check,
    check_random,
    constants,
    mico_ops,
)

RNG = np.random.default_rng(0)


def layer_of(module: ModuleOp) -> mico.QuantizedLayerOp:
    (layer,) = (op for op in nested_ops(module) if isinstance(op, mico.QuantizedLayerOp))
    return layer


@pytest.mark.parametrize(
    ("clause", "left"), [("", "mico.bitconv2d"), ("act_scale(%s) ", "mico.quantize")]
)
def test_layer_is_left_on_integers(clause: str, left: str) -> None:
    w = quantize_weight(RNG.standard_normal((4, 2, 3, 3), dtype=np.float32), 4)
    types = "tensor<?x2x6x6xf32>" + (", f32" if clause else "")
    module = parse_module(
        constants("w", w)
        + f"""func.func @main(%x: tensor<?x2x6x6xf32>, %s: f32) -> tensor<?x4x4x4xf32> {{
  %y = mico.bitconv2d(%x, @w) {clause}{{act_bits = 8}} : ({types}) -> tensor<?x4x4x4xf32>
  func.return %y : tensor<?x4x4x4xf32>
}}"""
    )
    x = RNG.standard_normal((3, 2, 6, 6), dtype=np.float32)
    check(module, x, np.float32(0.02), passes=("lower-activation-quant",))
    assert left in mico_ops(module)
    assert "mico.activation_quant" not in mico_ops(module)
    assert mico.element_width(layer_of(module).input.type) is not None


def test_layer_on_floats_is_left_alone() -> None:
    w = quantize_weight(RNG.standard_normal((4, 6), dtype=np.float32), 4)
    text = constants("w", w) + (
        "func.func @main(%x: tensor<2x6xf32>) -> tensor<2x4xf32> {\n"
        "  %y = mico.bitlinear(%x, @w) : (tensor<2x6xf32>) -> tensor<2x4xf32>\n"
        "  func.return %y : tensor<2x4xf32>\n}"
    )
    module, untouched = parse_module(text), parse_module(text)
    check(
        module,
        RNG.standard_normal((2, 6), dtype=np.float32),
        passes=("lower-activation-quant",),
    )
    assert str(module) == str(untouched)


@RANDOM
@given(data=st.data())
def test_random_activations(data: st.DataObject) -> None:
    check_random(data, "mico.activation_quant", "lower-activation-quant")
