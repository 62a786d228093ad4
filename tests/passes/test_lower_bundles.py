from __future__ import annotations

import numpy as np

from fewbit.dialects.mico import QTensorType
from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from tests.passes.lowering import lower, mico_ops

VALUES, SCALE, ZERO = "tensor<2x4x!mico.int<4>>", "tensor<2xf32>", "tensor<2xi32>"
BUNDLE = f"!mico.qtensor<{VALUES}, {SCALE}, {ZERO}>"

PROGRAM = f"""
graph.subgraph @moved(%b: {BUNDLE}) -> {BUNDLE} {{
  %t = graph.transfer %b from <cpu> to <npu> : {BUNDLE}
  graph.return %t : {BUNDLE}
}}
func.func private @swap(%x: f32, %b: {BUNDLE}) -> ({BUNDLE}, f32) {{
  %m = graph.call @moved(%b) : ({BUNDLE}) -> {BUNDLE}
  func.return %m, %x : {BUNDLE}, f32
}}
func.func @main(%b: {BUNDLE}, %x: f32) -> ({BUNDLE}, tensor<2x4xf32>) {{
  %c, %y = func.call @swap(%x, %b) : (f32, {BUNDLE}) -> ({BUNDLE}, f32)
  %u, %s, %z = mico.unbundle(%c) : ({BUNDLE}) -> ({VALUES}, {SCALE}, {ZERO})
  %d = mico.dequantize(%u, %s) zero_point(%z) : ({VALUES}, {SCALE}, {ZERO}) -> tensor<2x4xf32>
  func.return %c, %d : {BUNDLE}, tensor<2x4xf32>
}}
"""


def test_parts_go_through_functions_calls_and_transfers() -> None:
    parts = (
        np.array([[1, -8, 7, 0], [2, 3, 4, 5]], np.int8),
        np.array([0.5, 2], np.float32),
        np.array([1, -1], np.int32),
    )
    module = parse_module(PROGRAM)
    lower(module)
    *given, y = interpret(module, *parts, np.float32(3), function="main")
    u, s, z = parts
    np.testing.assert_array_equal(y, (u - z[:, None]).astype(np.float32) * s[:, None])
    for part, back in zip(parts, given, strict=True):
        np.testing.assert_array_equal(back, part)
    assert not mico_ops(module)
    values = [v for op in nested_ops(module) for v in (*op.operands, *op.results)]
    assert not any(isinstance(value.type, QTensorType) for value in values)


def test_a_program_without_bundles_is_left_alone() -> None:
    text = "func.func @main(%x: f32) -> f32 {\n  func.return %x : f32\n}"
    module = parse_module(text)
    lower(module, "lower-bundles")
    assert str(module) == str(parse_module(text))
