"""Prefix sums and products, lowered and compiled, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.errors import ShapeError
from fewbit.ir.parse import parse_module
from fewbit.program.program import Program
from tests.passes.lowering import check

SCAN = """
func.func @main(%x: tensor<{rows}x3x{element}>, %o: tensor<{rows}x3x{element}>,
    %a: tensor<3x{element}>) -> (tensor<{rows}x3x{element}>, tensor<3x{element}>) {{
  %r:2 = "tm_tensor.scan"(%x, %o, %a) <{{dimension = 0 : i64, inclusive = {inclusive},
      operandSegmentSizes = array<i32: 1, 2>}}> ({{
  ^bb0(%p: {element}, %q: {element}):
    %s = {op} %p, %q : {element}
    "tm_tensor.yield"(%s) : ({element}) -> ()
  }}) : (tensor<{rows}x3x{element}>, tensor<{rows}x3x{element}>, tensor<3x{element}>)
      -> (tensor<{rows}x3x{element}>, tensor<3x{element}>)
  func.return %r#0, %r#1 : tensor<{rows}x3x{element}>, tensor<3x{element}>
}}"""


@pytest.mark.parametrize("op", ["arith.addf", "arith.mulf", "arith.addi", "arith.muli"])
@pytest.mark.parametrize("inclusive", ["true", "false"])
@pytest.mark.parametrize("rows", ["5", "?"])
def test_is_the_same_in_loops(op: str, inclusive: str, rows: str) -> None:
    element, dtype = ("f32", np.float32) if op.endswith("f") else ("i64", np.int64)
    text = SCAN.format(op=op, inclusive=inclusive, rows=rows, element=element)
    program = Program(parse_module(text))
    compiled = fewbit.compile(program)
    rng = np.random.default_rng(0)
    for count in (5,) if rows == "5" else (5, 2, 1, 0):
        x, o = (rng.standard_normal((2, count, 3)) * 9).astype(dtype)
        initial = (rng.standard_normal(3) * 9).astype(dtype)
        expected = program.run(x, o, initial)
        result = compiled(x, o, initial)
        for given, wanted in zip(result, expected, strict=True):
            np.testing.assert_array_equal(given, wanted)
        check(parse_module(text), x, o, initial, passes=("lower-scan",))
    if rows == "?":
        with pytest.raises(ShapeError):
            compiled(np.ones((3, 3), dtype), np.ones((4, 3), dtype), np.ones(3, dtype))
