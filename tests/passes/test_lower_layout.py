from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from fewbit.ir.walk import nested_ops
from tests.passes.lowering import RANDOM, check, check_random


@pytest.mark.parametrize("kind", ["mico.flatten", "mico.reshape", "mico.transpose", "mico.concat"])
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-layout")


@pytest.mark.parametrize(
    ("shape", "x", "y", "expected"),
    [
        ("[0, 0, 3, 4]", "?x?x12", "?x?x3x4", {"tensor.expand_shape"}),
        ("[0, -1]", "?x3x4", "?x12", {"tensor.collapse_shape"}),
        ("[-1, 6]", "2x?x3", "?x6", {"tensor.collapse_shape", "tensor.expand_shape"}),
        ("[2, 0, 3]", "2x?x3", "2x?x3", set[str]()),
        ("[0, 1, -1, 3]", "2x?x3", "2x1x?x3", {"tensor.expand_shape"}),
        ("[-1]", "?x?x?", "?", {"tensor.collapse_shape"}),
        ("[]", "1x1", "", {"tensor.collapse_shape"}),
        ("[1, -1]", "", "1x1", set[str]()),
        ("[-1]", "1", "1", set[str]()),
    ],
)
def test_reshape_keeps_what_it_can(shape: str, x: str, y: str, expected: set[str]) -> None:
    before, after = (f"tensor<{d + 'x' if d else ''}f32>" for d in (x, y))
    module = parse_module(
        f"func.func @main(%x: {before}) -> {after} {{\n"
        f"  %y = mico.reshape(%x) {{shape = {shape}}} : ({before}) -> {after}\n"
        f"  func.return %y : {after}\n}}"
    )
    size = [4 if d == "?" else int(d) for d in x.split("x") if d]
    check(module, np.asarray(np.random.default_rng(0).random(size), np.float32))
    used = {op.name for op in nested_ops(module) if op.name.endswith("_shape")}
    assert used == expected


def test_integers_move_as_bytes() -> None:
    few = "!mico.int<4>"
    module = parse_module(
        f"func.func @main(%x: tensor<2x3x{few}>) -> tensor<12x{few}> {{\n"
        f"  %t = mico.transpose(%x) {{permutation = [1, 0]}}"
        f" : (tensor<2x3x{few}>) -> tensor<3x2x{few}>\n"
        f"  %c = mico.concat(%t, %t) {{dim = -1}}"
        f" : (tensor<3x2x{few}>, tensor<3x2x{few}>) -> tensor<3x4x{few}>\n"
        f"  %y = mico.flatten(%c) {{start_dim = 0}} : (tensor<3x4x{few}>) -> tensor<12x{few}>\n"
        f"  func.return %y : tensor<12x{few}>\n}}"
    )
    (y,) = check(module, np.array([[1, 2, 3], [-4, -5, -6]], np.int8))
    assert y.tolist() == [1, -4, 1, -4, 2, -5, 2, -5, 3, -6, 3, -6]
