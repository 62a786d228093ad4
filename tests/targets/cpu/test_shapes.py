"""Sizes of outputs from sizes of inputs, before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.errors import ShapeError, UnsupportedError
from fewbit.program.program import Program


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).integers(-5, 6, shape).astype(np.float32)


def test_sizes_come_from_several_inputs() -> None:
    program = Program.parse("""
func.func @main(%a: tensor<?x4xf32>, %b: tensor<4x?xf32>) -> tensor<?x?xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = tensor.dim %a, %zero : tensor<?x4xf32>
  %n = tensor.dim %b, %one : tensor<4x?xf32>
  %c = arith.constant 0.0 : f32
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x4xf32>, tensor<4x?xf32>)
      outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  func.return %r : tensor<?x?xf32>
}""")
    artifact = fewbit.compile(program)
    for m, n in ((3, 5), (1, 1), (0, 5), (64, 33)):
        a, b = floats(m, 4), floats(4, n)
        assert np.array_equal(artifact(a, b), a @ b)


def test_sizes_are_computed() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %less = arith.subi %n, %one : index
  %tail = tensor.extract_slice %x[1] [%less] [1] : tensor<?xf32> to tensor<?xf32>
  %half = arith.divui %n, %two : index
  %odd = tensor.extract_slice %x[1] [%half] [2] : tensor<?xf32> to tensor<?xf32>
  func.return %tail, %odd : tensor<?xf32>, tensor<?xf32>
}""")
    artifact = fewbit.compile(program)
    for n in (2, 7, 30):
        x = floats(n)
        tail, odd = artifact(x)
        assert np.array_equal(tail, x[1:])
        assert np.array_equal(odd, x[1::2])
    with pytest.raises(ShapeError):
        artifact(floats(0))


def test_what_is_asserted_is_checked_before_running() -> None:
    program = Program.parse("""
func.func @main(%x: tensor<?xf32>) -> tensor<2x?xf32> {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
  %rest = arith.remui %n, %two : index
  %even = arith.cmpi eq, %rest, %zero : index
  cf.assert %even, "an even number"
  %half = arith.divui %n, %two : index
  %r = tensor.expand_shape %x [[0, 1]] output_shape [2, %half] : tensor<?xf32> into tensor<2x?xf32>
  func.return %r : tensor<2x?xf32>
}""")
    artifact = fewbit.compile(program)
    assert np.array_equal(artifact(floats(6)), floats(6).reshape(2, 3))
    with pytest.raises(ShapeError, match="do not fit together"):
        artifact(floats(5))


def test_size_that_is_data_is_refused() -> None:
    program = Program.parse("""
func.func @main(%n: index) -> tensor<?xf32> {
  %c = arith.constant 1.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  func.return %f : tensor<?xf32>
}""")
    with pytest.raises(UnsupportedError, match="what the inputs contain") as raised:
        fewbit.compile(program)
    assert "all sizes before it runs" in str(raised.value.hint)


def test_state_beside_dynamic_sizes() -> None:
    """However many sizes are asked for, and however many results have attributes."""
    program = Program.parse("""
func.func @main(%x: tensor<?x?xf32>, %s: tensor<4xf32>)
    -> (tensor<?x?xf32>, tensor<?x?xf32>, tensor<4xf32> {fewbit.updates = 1 : i64}) {
  func.return %x, %x, %s : tensor<?x?xf32>, tensor<?x?xf32>, tensor<4xf32>
}""")
    first, second, state = fewbit.compile(program).run(floats(7, 2), floats(4))
    assert np.array_equal(first, floats(7, 2))
    assert np.array_equal(second, floats(7, 2))
    assert np.array_equal(state, floats(4))


def test_thousands_of_assertions_are_checked() -> None:
    """There are dozens in each layer of a transformer."""
    text = "\n".join(
        f"""
  %factor{i} = arith.constant {2 * i + 3} : index
  %most{i} = arith.constant {(2 * i + 3) * 9 + i} : index
  %n{i} = arith.muli %n, %factor{i} : index
  %ok{i} = arith.cmpi sle, %n{i}, %most{i} : index
  cf.assert %ok{i}, "it is too long"
"""
        for i in range(1500)
    )
    program = Program.parse(f"""
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : tensor<?xf32>
{text}
  %y = mico.add(%x, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}}""")
    artifact = fewbit.compile(program)
    assert np.array_equal(artifact(floats(9)), 2 * floats(9))
    with pytest.raises(ShapeError):
        artifact(floats(10))
