from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from tests.passes.lowering import RANDOM, check, check_random


@pytest.mark.parametrize("kind", ["mico.batch_norm", "mico.layer_norm", "mico.rms_norm"])
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-norm")


@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
def test_dynamic_size_and_any_float(element: str) -> None:
    x, w = f"tensor<?x?x{element}>", f"tensor<?x{element}>"
    module = parse_module(
        f"func.func @main(%x: {x}, %w: {w}) -> ({x}, {x}) {{\n"
        f"  %a = mico.layer_norm(%x, %w, %w) : ({x}, {w}, {w}) -> {x}\n"
        f"  %b = mico.rms_norm(%x) {{eps = 1.0e-06}} : ({x}) -> {x}\n"
        f"  func.return %a, %b : {x}, {x}\n}}"
    )
    rng = np.random.default_rng(0)
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[element]
    check(module, rng.normal(3, 2, (4, 6)).astype(dtype), rng.random(6).astype(dtype))
