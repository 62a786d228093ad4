from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from tests.passes.lowering import RANDOM, check, check_random


@pytest.mark.parametrize("kind", ["mico.attention"])
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-attention")


@pytest.mark.parametrize("bits", ["", ", query_bits = 8, key_bits = 4, value_bits = 8"])
def test_dynamic_tokens(bits: str) -> None:
    q, kv, mask = "tensor<?x4x?x8xf32>", "tensor<?x2x?x8xf32>", "tensor<?x?xf32>"
    module = parse_module(
        f"func.func @main(%q: {q}, %k: {kv}, %v: {kv}, %m: {mask}) -> {q} {{\n"
        f"  %y = mico.attention(%q, %k, %v) mask(%m) {{causal = true{bits}}}"
        f" : ({q}, {kv}, {kv}, {mask}) -> {q}\n"
        f"  func.return %y : {q}\n}}"
    )
    rng = np.random.default_rng(0)
    shapes = ((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 8), (5, 6))
    check(module, *(rng.standard_normal(shape, dtype=np.float32) for shape in shapes))
