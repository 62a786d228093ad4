"""Sums along the innermost loop are in 16 lanes, no others; sums of one tensor have the same bits."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import fewbit
from fewbit.ir.bindings import parse_mlir
from fewbit.passes.llvm.add_in_lanes import LANES
from fewbit.passes.loops.reassociate_sums import reassociate_sums
from fewbit.program.program import Program
from fewbit.toolchain.isa import names
from tests.targets.cpu.test_processors import outputs


def reassociated(kinds: str, to: str, body: str) -> str:
    module = parse_mlir(f"""
      #all = affine_map<(i, j) -> (i, j)>
      #to = affine_map<(i, j) -> ({to})>
      func.func @main(%x: memref<4x64xf32>, %y: memref<?xf32>) {{
        linalg.generic {{indexing_maps = [#all, #to], iterator_types = [{kinds}]}}
          ins(%x : memref<4x64xf32>) outs(%y : memref<?xf32>) {{
          ^bb0(%a: f32, %b: f32):
            {body}
            linalg.yield %z : f32
        }}
        return
      }}""")
    reassociate_sums(module)
    assert module.operation.verify()
    return str(module)


ROWS, COLUMNS = ('"parallel", "reduction"', "i"), ('"reduction", "parallel"', "j")


def test_a_sum_down_a_column_stays_in_order() -> None:
    """Whichever way the loops are nested: tiles nest them otherwise."""
    module = parse_mlir("""
      #x = affine_map<(i, j) -> (j, i)>
      #y = affine_map<(i, j) -> (i)>
      func.func @main(%x: memref<64x4xf32>, %y: memref<4xf32>) {
        linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "reduction"]}
          ins(%x : memref<64x4xf32>) outs(%y : memref<4xf32>) {
          ^bb0(%a: f32, %b: f32):
            %z = arith.addf %a, %b : f32
            linalg.yield %z : f32
        }
        return
      }""")
    reassociate_sums(module)
    assert "reassoc" not in str(module)


def test_sum_of_a_row() -> None:
    text = reassociated(*ROWS, "%s = arith.addf %a, %a : f32\n%z = arith.addf %b, %s : f32")
    (free,) = re.findall(r"arith.addf (.*) fastmath<reassoc>", text)
    assert "%out" in free
    assert text.count("arith.addf") == 2


@pytest.mark.parametrize(
    ("loops", "body"),
    [
        pytest.param(COLUMNS, "%z = arith.addf %a, %b : f32", id="along-an-outer-loop"),
        pytest.param(ROWS, "%z = arith.mulf %a, %b : f32", id="no-sum"),
        pytest.param(
            ROWS, "%s = arith.addf %a, %b : f32\n%z = arith.addf %s, %b : f32", id="twice"
        ),
    ],
)
def test_left_alone(loops: tuple[str, str], body: str) -> None:
    assert "reassoc" not in reassociated(*loops, body)


def in_lanes(x: np.ndarray) -> np.ndarray:
    """Sums of rows in the order that is promised."""
    whole = x.shape[1] // LANES * LANES
    lanes = np.zeros((len(x), LANES), np.float32)
    for start in range(0, whole, LANES):
        lanes += x[:, start : start + LANES]
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    total = lanes[:, 0]
    for rest in x[:, whole:].T:
        total = total + rest
    return total


def row_sums(columns: str, factors: str = "") -> Program:
    """Sums of rows; of their products with a row of `factors`, if these have a type."""
    x, y = f"tensor<7x{columns}xf32>", "tensor<7xf32>"
    inputs = [("x", x, "(i, j)"), *([("w", factors, "(j)")] if factors else [])]
    maps = [f"affine_map<(i, j) -> {index}>" for _, _, index in (*inputs, ("y", y, "(i)"))]
    product = "%p = arith.mulf %x_0, %w_0 : f32" if factors else ""
    return Program.parse(f"""
func.func @main({", ".join(f"%{name}: {type}" for name, type, _ in inputs)}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {y}
  %start = linalg.fill ins(%zero : f32) outs(%e : {y}) -> {y}
  %sum = linalg.generic {{
      indexing_maps = [{", ".join(maps)}], iterator_types = ["parallel", "reduction"]}}
      ins({", ".join(f"%{name}" for name, _, _ in inputs)} : {", ".join(t for _, t, _ in inputs)})
      outs(%start : {y}) {{
  ^bb0({", ".join(f"%{name}_0: f32" for name, _, _ in inputs)}, %b: f32):
    {product}
    %s = arith.addf %b, {"%p" if factors else "%x_0"} : f32
    linalg.yield %s : f32
  }} -> {y}
  func.return %sum : {y}
}}""")


@pytest.mark.parametrize("processor", names())
def test_sums_have_the_same_bits_on_all_processors(tmp_path: Path, processor: str) -> None:
    """They are sums of f64, rounded once; the number of threads changes nothing."""
    program = row_sums("?")
    artifact = fewbit.compile(program, f"cpu:{processor}", tmp_path / "net", name="net")
    for columns in (5, 16, 47, 192):
        x = np.random.default_rng(columns).standard_normal((7, columns)).astype(np.float32)
        (result,) = outputs(artifact, tmp_path, program, x)
        (shared,) = outputs(artifact, tmp_path, program, x, threads=3)
        assert np.array_equal(result, shared)
        assert np.array_equal(result, x.sum(1, dtype=np.float64).astype(np.float32))


@pytest.mark.parametrize("processor", names())
def test_order_of_sums_of_products(tmp_path: Path, processor: str) -> None:
    """The order is that of x86-64 on all its processors."""
    program = row_sums("47", "tensor<47xf32>")
    artifact = fewbit.compile(program, f"cpu:{processor}", tmp_path / "net", name="net")
    x = np.random.default_rng(0).standard_normal((7, 47)).astype(np.float32)
    (result,) = outputs(artifact, tmp_path, program, x, np.ones(47, np.float32))
    assert np.allclose(result, in_lanes(x), rtol=0, atol=1e-5)
    if processor.startswith("x86-64"):
        assert np.array_equal(result, in_lanes(x))


@pytest.mark.parametrize(("integer", "is_free"), [("i32", False), ("i8", True)])
def test_scaled_sums_of_integers_stay_in_order(integer: str, is_free: bool) -> None:
    """Accumulators of groups; dequantized bytes are no accumulators."""
    module = parse_mlir(f"""
      #all = affine_map<(i, j) -> (i, j)>
      #to = affine_map<(i, j) -> (i)>
      func.func @main(%x: memref<4x64x{integer}>, %s: memref<4x64xf32>, %y: memref<4xf32>) {{
        linalg.generic {{indexing_maps = [#all, #all, #to],
            iterator_types = ["parallel", "reduction"]}}
          ins(%x, %s : memref<4x64x{integer}>, memref<4x64xf32>) outs(%y : memref<4xf32>) {{
          ^bb0(%a: {integer}, %scale: f32, %b: f32):
            %f = arith.sitofp %a : {integer} to f32
            %t = arith.mulf %f, %scale : f32
            %z = arith.addf %b, %t : f32
            linalg.yield %z : f32
        }}
        return
      }}""")
    reassociate_sums(module)
    assert ("reassoc" in str(module)) is is_free
