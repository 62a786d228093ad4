"""Passes change the form of a program and not what it computes, to the bit."""

from collections.abc import Callable

import numpy as np
import pytest

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module

RunPasses = Callable[[str, str], str]

MODEL = """
mico.constant @fc.scale : tensor<4xf32> = dense<[0.5, 0.25, 1.5, 0.125]>
mico.constant @fc.weight : tensor<4x6x!mico.int<4>>
    = dense<"0x123456789abcdef0fedcba98"> scale @fc.scale
mico.constant @bias : tensor<4xf32> = dense<[1.0, -2.0, 3.0, -4.0]>
mico.constant @unused : tensor<4xf32> = dense<0.0>

graph.subgraph @model.fc(%x: tensor<2x6xf32>) -> tensor<2x4xf32> {
  %w = mico.get_constant @fc.weight : tensor<4x6x!mico.int<4>>
  %s = mico.get_constant @fc.scale : tensor<4xf32>
  %y = mico.bitlinear(%x, %w) weight_scale(%s) {act_bits = 8}
     : (tensor<2x6xf32>, tensor<4x6x!mico.int<4>>, tensor<4xf32>) -> tensor<2x4xf32>
  graph.return %y : tensor<2x4xf32>
}
graph.subgraph @model.head(%x: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>) {
  %b = mico.get_constant @bias : tensor<4xf32>
  %r = mico.relu(%b) : (tensor<4xf32>) -> tensor<4xf32>
  %c = mico.add(%x, %r) : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %d = mico.relu(%c) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %e = mico.relu(%d) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %t = mico.transpose(%e) {permutation = [1, 0]} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %u = mico.transpose(%t) {permutation = [1, 0]} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %v = mico.mul(%u, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  graph.return %t, %v : tensor<4x2xf32>, tensor<2x4xf32>
}
func.func @main(%x: tensor<2x3x2xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>) {
  %f = mico.flatten(%x) : (tensor<2x3x2xf32>) -> tensor<2x6xf32>
  %y = graph.call @model.fc(%f) : (tensor<2x6xf32>) -> tensor<2x4xf32>
  %again = graph.call @model.fc(%f) : (tensor<2x6xf32>) -> tensor<2x4xf32>
  %t, %v = graph.call @model.head(%y) : (tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<2x4xf32>)
  %w = arith.addf %v, %again : tensor<2x4xf32>
  func.return %t, %w : tensor<4x2xf32>, tensor<2x4xf32>
}
"""

PIPELINES = [
    "canonicalize",
    "cse",
    "dce",
    "symbol-dce",
    "fold-constants",
    "inline",
    'inline{only="model.fc"}',
    "inline,canonicalize,cse,fold-constants,dce,symbol-dce",
    'place-devices{rules="model=npu","model.head=gpu"}',
    'place-devices{rules="model=npu"},inline{across-devices=true},canonicalize,cse',
    'inline,outline-subgraph{scopes="model.head","re:.*fc"},place-devices{rules="re:.*head=npu"}',
]


@pytest.mark.parametrize("passes", PIPELINES)
def test_outputs_are_the_same(run_passes: RunPasses, passes: str):
    x = np.random.default_rng(0).normal(size=(2, 3, 2)).astype(np.float32)
    expected = interpret(parse_module(MODEL), x)
    given = interpret(parse_module(run_passes(MODEL, passes)), x)
    assert len(expected) == len(given) == 2
    for a, b in zip(expected, given, strict=True):
        assert np.array_equal(a, b)
        assert np.abs(a).max() > 0


def test_simplified_program_is_smaller(run_passes: RunPasses):
    text = run_passes(MODEL, "inline,canonicalize,cse,fold-constants,dce,symbol-dce")
    assert "graph." not in text
    assert "@unused" not in text
    assert text.count("mico.bitlinear") == 1
