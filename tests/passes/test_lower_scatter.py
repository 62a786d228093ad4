"""Scattered writes, lowered and compiled, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.ir.parse import parse_module
from fewbit.program.program import Program
from tests.passes.lowering import check

SCATTER = """
func.func @main(%u: tensor<{n}x{window}xf32>, %i: tensor<{n}x1xi64>, %o: tensor<5x3xf32>)
    -> tensor<5x3xf32> {{
  %r = "tm_tensor.scatter"(%u, %i, %o) <{{dimension_map = array<i64: 0>, unique_indices = false,
      operandSegmentSizes = array<i32: 2, 1>}}> ({{
  ^bb0(%new: f32, %old: f32):
    {combine}
  }}) : (tensor<{n}x{window}xf32>, tensor<{n}x1xi64>, tensor<5x3xf32>) -> tensor<5x3xf32>
  func.return %r : tensor<5x3xf32>
}}"""
SET = '"tm_tensor.yield"(%new) : (f32) -> ()'
ADD = '%s = arith.addf %new, %old : f32\n"tm_tensor.yield"(%s) : (f32) -> ()'


def program(combine: str, n: str = "4", window: str = "1x3") -> Program:
    text = SCATTER.format(combine=combine, n=n, window=window)
    return Program(parse_module(text))


@pytest.mark.parametrize("combine", [SET, ADD], ids=["set", "add"])
@pytest.mark.parametrize("n", ["4", "?"])
@pytest.mark.parametrize("window", ["1x3", "2x2", "3"])
def test_is_the_same_in_loops(combine: str, n: str, window: str) -> None:
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((4, *map(int, window.split("x")))).astype(np.float32)
    places = np.array([[2], [0], [3], [2]])
    original = rng.standard_normal((5, 3)).astype(np.float32)
    made = program(combine, n, window)
    (expected,) = made.run(updates, places, original)
    assert not np.array_equal(expected, original)
    compiled = fewbit.compile(made)
    np.testing.assert_array_equal(compiled(updates, places, original), expected)
    np.testing.assert_array_equal(compiled(updates, places, original, threads=2), expected)
    check(made.module, updates, places, original, passes=("lower-scatter",))
