"""What the target cannot lower is named, with its place."""

from __future__ import annotations

import pytest

import fewbit
from fewbit.errors import UnsupportedError
from fewbit.ir.parse import parse_module
from fewbit.program.program import Program

SORT_WITH_AN_INPUT = """
func.func @main(%x: tensor<6xi32>, %y: tensor<6xi32>) -> tensor<6xi32> {
  %r = "tm_tensor.sort"(%x, %y) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.cmpi sge, %a, %b : i32
    "tm_tensor.yield"(%s) : (i1) -> ()
  }) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
  func.return %r : tensor<6xi32>
}"""


def test_ops_without_code_are_named() -> None:
    with pytest.raises(UnsupportedError, match=r"tm_tensor\.sort \("):
        fewbit.compile(Program(parse_module(SORT_WITH_AN_INPUT)))
