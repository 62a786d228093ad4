"""torch-mlir's scan, scatter and sort; what its front end makes of them is tested with it."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.errors import InterpretError
from fewbit.ir.parse import parse_module
from tests.interpreter.programs import context, f32, i32, run

SCAN = """
func.func @main(%x: tensor<2x4xi32>, %o: tensor<2x4xi32>, %a: tensor<2xi32>)
    -> (tensor<2x4xi32>, tensor<2xi32>) {{
  %r:2 = "tm_tensor.scan"(%x, %o, %a) <{{dimension = 1 : i64, inclusive = {},
      operandSegmentSizes = array<i32: 1, 2>}}> ({{
  ^bb0(%p: i32, %q: i32):
    %s = arith.addi %p, %q : i32
    "tm_tensor.yield"(%s) : (i32) -> ()
  }}) : (tensor<2x4xi32>, tensor<2x4xi32>, tensor<2xi32>) -> (tensor<2x4xi32>, tensor<2xi32>)
  func.return %r#0, %r#1 : tensor<2x4xi32>, tensor<2xi32>
}}"""


@pytest.mark.parametrize(
    ("inclusive", "prefixes"),
    [
        ("true", [[1, 3, 6, 10], [5, 11, 18, 26]]),
        ("false", [[100, 101, 103, 106], [200, 205, 211, 218]]),
    ],
)
def test_scan(inclusive: str, prefixes: list[list[int]]) -> None:
    x = i32([[1, 2, 3, 4], [5, 6, 7, 8]])
    result, total = run(SCAN.format(inclusive), x, np.zeros_like(x), i32([100, 200]))
    assert result.tolist() == prefixes
    assert total.tolist() == [row[-1] for row in prefixes]


SCATTER = """
func.func @main(%u: tensor<3x1x2xf32>, %i: tensor<3x1xi32>, %o: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "tm_tensor.scatter"(%u, %i, %o) <{dimension_map = array<i64: 0>, unique_indices = false,
      operandSegmentSizes = array<i32: 2, 1>}> ({
  ^bb0(%new: f32, %old: f32):
    %s = arith.addf %new, %old : f32
    "tm_tensor.yield"(%s) : (f32) -> ()
  }) : (tensor<3x1x2xf32>, tensor<3x1xi32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  func.return %r : tensor<4x2xf32>
}"""


def test_scatter_combines_updates_of_one_place() -> None:
    updates = f32([[[1, 2]], [[10, 20]], [[100, 200]]])
    (result,) = run(SCATTER, updates, i32([[2], [0], [2]]), np.ones((4, 2), np.float32))
    assert result.tolist() == [[11, 21], [1, 1], [102, 203], [1, 1]]
    with pytest.raises(InterpretError, match=r"writes at \[4, 0\], outside"):
        run(SCATTER, updates, i32([[2], [4], [2]]), np.ones((4, 2), np.float32))


def test_sort_keeps_the_order_of_equals() -> None:
    text = """
    func.func @main(%x: tensor<6xi32>, %i: tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>) {
      %r:2 = "tm_tensor.sort"(%x, %i) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 2>}> ({
      ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
        %s = arith.cmpi sge, %a, %b : i32
        "tm_tensor.yield"(%s) : (i1) -> ()
      }) : (tensor<6xi32>, tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>)
      func.return %r#0, %r#1 : tensor<6xi32>, tensor<6xi32>
    }"""
    values, places = run(text, i32([3, 9, 3, 1, 9, 3]), np.arange(6, dtype=np.int32))
    assert values.tolist() == [9, 9, 3, 3, 3, 1]
    assert places.tolist() == [1, 4, 0, 2, 5, 3]


def test_other_ops_of_the_dialect_are_refused_by_name() -> None:
    ctx = context()
    ctx.allow_unregistered = True
    module = parse_module(
        'func.func @main() { "tm_tensor.attention"() : () -> () \n func.return }', ctx=ctx
    )
    from fewbit.interpreter import interpret

    with pytest.raises(InterpretError, match=r"no semantics for these ops:\n  tm_tensor.attention"):
        interpret(module)
