from __future__ import annotations

import numpy as np

from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from tests.passes.lowering import check, lower, mico_ops


def test_constants_of_the_text_move_into_functions() -> None:
    module = parse_module(
        "mico.constant @c : tensor<2xf32> = dense<[1.5, -2.0]>\n"
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "  %c = mico.get_constant @c : tensor<2xf32>\n"
        "  %y = arith.addf %x, %c : tensor<2xf32>\n"
        "  func.return %y : tensor<2xf32>\n}"
    )
    check(module, np.array([1, 2], np.float32), passes=("constants-to-arith",))
    assert not mico_ops(module)
    assert "arith.constant" in {op.name for op in nested_ops(module)}


def test_few_bit_and_stored_constants_stay() -> None:
    text = (
        "mico.constant @s : tensor<f32> = dense<1.0>\n"
        "mico.constant @w : tensor<2x2x!mico.int<4>> = dense<1> scale @s\n"
        f'mico.constant @r : tensor<2xf32> = #mico.ref<"r", "{"0" * 64}">\n'
        "func.func @main() -> (tensor<2x2x!mico.int<4>>, tensor<2xf32>) {\n"
        "  %w = mico.get_constant @w : tensor<2x2x!mico.int<4>>\n"
        "  %r = mico.get_constant @r : tensor<2xf32>\n"
        "  func.return %w, %r : tensor<2x2x!mico.int<4>>, tensor<2xf32>\n}"
    )
    module = parse_module(text)
    lower(module, "constants-to-arith")
    assert str(module) == str(parse_module(text))
