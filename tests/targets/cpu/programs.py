"""Small programs that the tests of this target compile."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewbit.program.program import Program

Array = np.ndarray[Any, Any]

ROWS, WIDE, HIDDEN, CLASSES = 6, 8, 32, 5


def layers(*, dynamic: bool = False, bits: int | None = None) -> Program:
    """Two inputs are added; their sum is an output, and what two linear layers make of it another.

    With `bits`, weights and activations are integers; with `dynamic`, any number of rows is taken.
    """
    rows = "?" if dynamic else str(ROWS)
    element = "f32" if bits is None else f"!mico.int<{bits}>"
    attributes = "" if bits is None else " {act_bits = 8}"
    types = {n: f"tensor<{rows}x{n}xf32>" for n in (WIDE, HIDDEN, CLASSES)}
    x = types[WIDE]
    sized = f"""
  %zero = arith.constant 0 : index
  %m = tensor.dim %x, %zero : {x}
  %n = tensor.dim %y, %zero : {x}
  %same = arith.cmpi eq, %m, %n : index
  cf.assert %same, "x and y are of one length"
  %e = tensor.empty(%m) : {x}"""
    return Program.parse(f"""
#same = affine_map<(i, j) -> (i, j)>
{_constant("first", (HIDDEN, WIDE), element)}
{_constant("second", (CLASSES, HIDDEN), element)}
func.func @main(%x: {x}, %y: {x}) -> ({types[CLASSES]}, {x}) {{
  {sized if dynamic else f"%e = tensor.empty() : {x}"}
  %sum = linalg.generic
      {{indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : {x}, {x}) outs(%e : {x}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }} -> {x}
  %h = mico.bitlinear(%sum, @first){attributes} : ({x}) -> {types[HIDDEN]}
  %r = mico.relu(%h) : {types[HIDDEN]} -> {types[HIDDEN]}
  %o = mico.bitlinear(%r, @second){attributes} : ({types[HIDDEN]}) -> {types[CLASSES]}
  func.return %o, %sum : {types[CLASSES]}, {x}
}}""")


def _constant(name: str, shape: tuple[int, int], element: str) -> str:
    values = np.random.default_rng(shape[0]).integers(-3, 4, shape)
    if element == "f32":
        return f"mico.constant @{name} : tensor<{shape[0]}x{shape[1]}xf32> = dense<{values.astype(float).tolist()}>"
    return f"""mico.constant @{name}_scale : tensor<f32> = dense<0.5>
mico.constant @{name} : tensor<{shape[0]}x{shape[1]}x{element}> = dense<{values.tolist()}> scale @{name}_scale"""


def inputs(rows: int = ROWS) -> tuple[Array, Array]:
    """Small integers, whose sums are exact in any order."""
    random = np.random.default_rng(rows)
    x, y = random.integers(-8, 9, (2, rows, WIDE)).astype(np.float32)
    return x, y


def elementwise(element: str, op: str, size: int = 5) -> Program:
    """One op on two vectors."""
    tensor = f"tensor<{size}x{element}>"
    return Program.parse(f"""
#same = affine_map<(i) -> (i)>
func.func @main(%a: {tensor}, %b: {tensor}) -> {tensor} {{
  %e = tensor.empty() : {tensor}
  %r = linalg.generic {{indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]}}
      ins(%a, %b : {tensor}, {tensor}) outs(%e : {tensor}) {{
  ^bb0(%x: {element}, %y: {element}, %z: {element}):
    %s = arith.{op} %x, %y : {element}
    linalg.yield %s : {element}
  }} -> {tensor}
  func.return %r : {tensor}
}}""")
