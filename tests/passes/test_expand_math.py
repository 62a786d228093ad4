from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from fewbit.numerics.approximations import evaluate
from tests.numerics.approximations.references import REFERENCES, SPECIAL, Array, assert_close, every
from tests.passes.lowering import lower

STAYS = {"math.absf", "math.floor", "math.sqrt"}
"""Ops that processors have, of which formulas are made."""

floats32 = st.floats(width=32)


def program(op: str, *arguments: str, element: str = "f32", before: str = "") -> str:
    """Return a loop over vectors, with an op in its body."""
    tensor = f"tensor<?x{element}>"
    inputs = ", ".join(f"%{name}: {tensor}" for name in arguments)
    operands = ", ".join(f"%{name}" for name in arguments)
    maps = ", ".join(["affine_map<(d0) -> (d0)>"] * (len(arguments) + 1))
    body = ", ".join(f"%{name}_0: {element}" for name in (*arguments, "out"))
    return f"""func.func @main({inputs}) -> {tensor} {{
      %c0 = arith.constant 0 : index
      %size = tensor.dim %x, %c0 : {tensor}
      %empty = tensor.empty(%size) : {tensor}
      %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
          ins({operands} : {", ".join([tensor] * len(arguments))}) outs(%empty : {tensor}) {{
      ^bb0({body}):
        {before}
        %v = {op}
        linalg.yield %v : {element}
      }} -> {tensor}
      func.return %r : {tensor}
    }}"""


def expand(text: str, *inputs: Any) -> Array:
    """Return the program's result when only arithmetic is left: to the bit that of the op."""
    (of_op,) = interpret(parse_module(text), *inputs)
    module = lower(parse_module(text), "expand-math")
    used = {op.name for op in nested_ops(module) if op.dialect_name() == "math"}
    assert used <= STAYS
    (result,) = interpret(module, *inputs)
    np.testing.assert_array_equal(result, of_op)
    return result


def exactly(function: Callable[..., Any], *inputs: Any) -> Any:
    """Return a function of float64, rounded to float32."""
    with np.errstate(all="ignore"):
        wide = function(*(np.asarray(x).astype(np.float64) for x in inputs))
        return np.asarray(wide).astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_program_computes_the_formula_to_the_bit(name: str) -> None:
    x = every(799_999)
    result = expand(program(f"math.{name} %x_0 : f32", "x"), x)
    np.testing.assert_array_equal(result, evaluate(REFERENCES[name].formula, x))


@pytest.mark.parametrize("op", ["powf", "atan2"])
@settings(max_examples=20, deadline=None)
@given(x=floats32, y=floats32)
def test_ops_of_two_numbers(op: str, x: float, y: float) -> None:
    text = program(f"math.{op} %x_0, %y_0 : f32", "x", "y")
    inputs = [np.append(SPECIAL, np.float32(x)), np.append(SPECIAL[::-1], np.float32(y))]
    exact = exactly({"powf": np.power, "atan2": np.arctan2}[op], *inputs)
    assert_close(expand(text, *inputs), exact, 3e-7)


@pytest.mark.parametrize("n", [-70, -2, 0, 1, 2, 3, 5, 64, 65])
def test_constant_exponents(n: int) -> None:
    x = every(7_999_993)
    integer = program(
        "math.fpowi %x_0, %n : f32, i32", "x", before=f"%n = arith.constant {n} : i32"
    )
    real = program("math.powf %x_0, %n : f32", "x", before=f"%n = arith.constant {n}.0 : f32")
    for text in (integer, real):
        assert_close(expand(text, x), exactly(np.power, x, float(n)), 2e-7)


def test_exponents_that_are_no_constants() -> None:
    text = (
        "func.func @main(%x: f32, %n: i32) -> f32 {\n"
        "  %y = math.fpowi %x, %n : f32, i32\n  func.return %y : f32\n}"
    )
    for n in (-5, 0, 3, 20, 2**24 + 1):
        x, power = np.float32(-1.000001), np.int32(n)
        result = expand(text, x, power)
        assert_close(np.atleast_1d(result), np.atleast_1d(exactly(np.power, x, power)), 2e-7)


@pytest.mark.parametrize("exponent", ["0.5", "1.0e+10", "0x7F800000", "0x7FC00000"])
def test_constant_exponents_that_are_no_small_integers(exponent: str) -> None:
    # numpy's power takes a root for a single exponent of 0.5, which -inf has not.
    x = SPECIAL[~np.isneginf(SPECIAL)]
    text = program("math.powf %x_0, %n : f32", "x", before=f"%n = arith.constant {exponent} : f32")
    power = {"0x7F800000": np.inf, "0x7FC00000": np.nan}.get(exponent) or float(exponent)
    assert_close(expand(text, x), exactly(np.power, x, np.full_like(x, power)), 2e-7)


def test_half_precision() -> None:
    x = np.arange(0, 1 << 16, 7, dtype=np.uint16).view(np.float16)
    text = program("math.tanh %x_0 : f16", "x", element="f16")
    (exact,) = interpret(parse_module(text), x)
    result = expand(text, x)
    assert result.dtype == np.float16
    np.testing.assert_allclose(
        result.astype(np.float64), exact.astype(np.float64), rtol=1.01 * 2**-10, atol=6e-8
    )


@pytest.mark.parametrize("name", ["exp", "erf", "sin"])
def test_bfloat16(name: str) -> None:
    x = np.linspace(-4, 4, 333).astype(np.float32)
    text = (
        "func.func @main(%x: tensor<333xf32>) -> tensor<333xbf16> {\n"
        "  %e = tensor.empty() : tensor<333xbf16>\n"
        "  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>,"
        ' affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}'
        " ins(%x : tensor<333xf32>) outs(%e : tensor<333xbf16>) {\n"
        "  ^bb0(%a: f32, %b: bf16):\n"
        "    %t = arith.truncf %a : f32 to bf16\n"
        f"    %v = math.{name} %t : bf16\n"
        "    linalg.yield %v : bf16\n  } -> tensor<333xbf16>\n"
        "  func.return %r : tensor<333xbf16>\n}"
    )
    (exact,) = interpret(parse_module(text), x)
    np.testing.assert_allclose(
        expand(text, x).astype(np.float64), exact.astype(np.float64), rtol=2**-7
    )


@pytest.mark.parametrize("op", ["math.exp %x_0 : f64", "math.powf %x_0, %x_0 : f64"])
def test_double_precision_is_left_to_the_library(op: str) -> None:
    module = lower(parse_module(program(op, "x", element="f64")), "expand-math")
    assert op.split()[0] in {inner.name for inner in nested_ops(module)}
