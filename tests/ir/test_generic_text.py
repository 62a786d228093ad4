"""The text for upstream's parser: what it reads is what our printer's text gives."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from fewbit.ir.bindings import parse_mlir
from fewbit.ir.generic_text import generic_text
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module

TEXTS = {
    "regions": """
func.func @main(%x: tensor<?x4xf32>, %n: index) -> (tensor<?x4xf32>, index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %size = tensor.dim %x, %zero : tensor<?x4xf32>
  %empty = tensor.empty(%size) : tensor<?x4xf32>
  %twice = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%empty : tensor<?x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %a : f32
    linalg.yield %c : f32
  } -> tensor<?x4xf32>
  %last = scf.for %i = %zero to %n step %one iter_args(%kept = %twice) -> (tensor<?x4xf32>) {
    scf.yield %kept : tensor<?x4xf32>
  }
  func.return %last, %size : tensor<?x4xf32>, index
}
""",
    "blocks": """
func.func @main(%c: i1, %x: i32) -> i32 {
  cf.cond_br %c, ^left(%x : i32), ^right
^left(%y: i32):
  func.return %y : i32
^right:
  cf.assert %c, "it is \\"so\\""
  cf.br ^left(%x : i32)
}
""",
    "attributes": """
builtin.module attributes {fewbit.unit, fewbit.list = [1 : i64, "two", 3.0 : f32]} {
  func.func private @outside(tensor<2xf32>) -> ()
  func.func @main() -> tensor<2xf32> {
    %x = arith.constant dense<[0.0, -0.0]> : tensor<2xf32> loc("layer"("file.py":3:4))
    func.call @outside(%x) : (tensor<2xf32>) -> ()
    func.return %x : tensor<2xf32>
  }
}
""",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_upstream_reads_the_same(text: str) -> None:
    module = parse_module(text)
    assert isinstance(module, ModuleOp)
    ours = parse_mlir(generic_text(module)).operation.get_asm(enable_debug_info=True)
    printed = print_module(module, generic=True, locations=True)
    assert ours == parse_mlir(printed).operation.get_asm(enable_debug_info=True)
