from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.interpreter import interpret
from fewbit.ir.parse import parse_module
from tests.passes.lowering import RANDOM, check, check_random, lower


@RANDOM
@given(data=st.data())
def test_random_ops(data: st.DataObject) -> None:
    check_random(data, "mico.hadamard", "lower-hadamard")


def module_of(block: int, element: str = "f32") -> str:
    x = f"tensor<?x?x{element}>"
    return (
        f"func.func @main(%x: {x}) -> {x} {{\n"
        f"  %y = mico.hadamard(%x) {{block = {block} : i32}} : ({x}) -> {x}\n"
        f"  func.return %y : {x}\n}}"
    )


@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
def test_dynamic_size_and_any_float(element: str) -> None:
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[element]
    x = np.random.default_rng(0).normal(0, 2, (3, 64)).astype(dtype)
    check(parse_module(module_of(32, element)), x)


@pytest.mark.parametrize("block", [2, 32, 64, 128])
def test_loops_give_the_same_bits(block: int) -> None:
    x = np.random.default_rng(block).normal(0, 2, (3, 384)).astype(np.float32)
    (expected,) = interpret(parse_module(module_of(block)), x)
    (given,) = interpret(lower(parse_module(module_of(block))), x)
    np.testing.assert_array_equal(given, expected)
