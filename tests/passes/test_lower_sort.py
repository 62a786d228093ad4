"""Sorting, lowered and compiled, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.ir.parse import parse_module
from fewbit.program.program import Program
from tests.passes.lowering import check

SORT = """
func.func @main(%x: tensor<{shape}xi32>, %i: tensor<{shape}xi64>)
    -> (tensor<{shape}xi32>, tensor<{shape}xi64>) {{
  %r:2 = "tm_tensor.sort"(%x, %i) <{{dimension = {axis} : i64,
      operandSegmentSizes = array<i32: 0, 2>}}> ({{
  ^bb0(%a: i32, %b: i32, %c: i64, %d: i64):
    %s = arith.cmpi {predicate}, %a, %b : i32
    "tm_tensor.yield"(%s) : (i1) -> ()
  }}) : (tensor<{shape}xi32>, tensor<{shape}xi64>) -> (tensor<{shape}xi32>, tensor<{shape}xi64>)
  func.return %r#0, %r#1 : tensor<{shape}xi32>, tensor<{shape}xi64>
}}"""


@pytest.mark.parametrize("predicate", ["sle", "slt", "sge"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", ["7x4", "?x?"])
def test_is_the_same_in_loops_and_stable(predicate: str, axis: int, shape: str) -> None:
    """There are few different numbers, so that equal ones show whether their order is kept."""
    text = SORT.format(shape=shape, axis=axis, predicate=predicate)
    program = Program(parse_module(text))
    compiled = fewbit.compile(program)
    rng = np.random.default_rng(0)
    for sizes in [(7, 4)] if shape == "7x4" else [(7, 4), (1, 9), (16, 1), (3, 17), (0, 2)]:
        x = rng.integers(0, 4, sizes).astype(np.int32)
        places = np.arange(x.size).reshape(sizes)
        expected = program.run(x, places)
        for given, wanted in zip(compiled(x, places), expected, strict=True):
            np.testing.assert_array_equal(given, wanted)
        check(parse_module(text), x, places, passes=("lower-sort",))
