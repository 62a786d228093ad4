"""Sums of 16-bit floats, lowered and on every target, against the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fewbit
from fewbit.ir.parse import parse_module
from fewbit.kernels.cuda.arch import HOPPER
from fewbit.program.program import Program
from fewbit.targets.cuda.target import compile_cuda
from tests.passes.lowering import lower
from tests.targets.cuda.emulate import COMPILER, Emulated

Array = np.ndarray[Any, Any]

STEPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
ROWS = 5000
"""A sum of so many numbers below 1 stops growing in either type."""


def columns(element: str, body: str = "%t = arith.addf %s, %a", start: float = 0.0) -> Program:
    """Return a sum down each of 8 columns, across the rows that lie side by side."""
    x, y = f"tensor<{ROWS}x8x{element}>", f"tensor<8x{element}>"
    return Program(
        parse_module(f"""
func.func @main(%x: {x}) -> {y} {{
  %zero = arith.constant {start} : {element}
  %e = tensor.empty() : {y}
  %start = linalg.fill ins(%zero : {element}) outs(%e : {y}) -> {y}
  %sum = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]}} ins(%x : {x}) outs(%start : {y}) {{
  ^bb0(%a: {element}, %s: {element}):
    {body} : {element}
    linalg.yield %t : {element}
  }} -> {y}
  func.return %sum : {y}
}}""")
    )


def numbers(element: str) -> Array:
    return np.random.default_rng(0).random((ROWS, 8)).astype(DTYPES[element])


def assert_close(found: Any, expected: Array) -> None:
    """Compare within one step of the type: f32 and float64 may lie on two sides of a tie."""
    np.testing.assert_allclose(
        np.asarray(found).astype(np.float64),
        expected.astype(np.float64),
        rtol=STEPS[expected.dtype.name],
    )


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(
    "body",
    [
        "%t = arith.addf %a, %s",
        "%p = arith.mulf %a, %a : {0}\n%t = arith.addf %s, %p",
        "%h = arith.maximumf %a, %a : {0}\n%t = arith.addf %s, %h",
    ],
    ids=["sum", "squares", "terms"],
)
def test_the_lowered_program_is_the_same(element: str, body: str) -> None:
    program = columns(element, body.format(element), start=0.25)
    x = numbers(element)
    (expected,) = program.run(x)
    lowered = Program(lower(program.module.clone(), "widen-sums"))
    assert_close(lowered.run(x)[0], expected)
    exact = ROWS / 3 if "mulf" in body else ROWS / 2
    np.testing.assert_allclose(expected.astype(np.float64), exact, rtol=0.05)


def test_a_product_of_many_factors() -> None:
    program = columns("f16", "%t = arith.mulf %s, %a", start=1.0)
    x = np.float16(1) + numbers("f16") / np.float16(ROWS / 3)
    assert_close(fewbit.compile(program)(x), program.run(x)[0])


@pytest.mark.parametrize("element", DTYPES)
def test_compiled_for_this_processor(element: str) -> None:
    program, x = columns(element), numbers(element)
    compiled = fewbit.compile(program)
    for threads in (1, 2):
        assert_close(compiled(x, threads=threads), program.run(x)[0])


@pytest.mark.parametrize(("target", "element"), [("iree-cpu", "f16"), ("vexii", "bf16")])
def test_compiled_for_other_targets(target: str, element: str) -> None:
    program, x = columns(element), numbers(element)
    assert_close(fewbit.compile(program, target)(x), program.run(x)[0])


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_planned_for_a_gpu(tmp_path: Path) -> None:
    program, x = columns("f16"), numbers("f16")
    assert_close(Emulated(compile_cuda(program, HOPPER), tmp_path)(x)[0], program.run(x)[0])
