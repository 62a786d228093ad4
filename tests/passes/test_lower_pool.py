from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from tests.passes.lowering import RANDOM, check, check_random


@pytest.mark.parametrize("kind", ["mico.maxpool2d", "mico.avgpool2d"])
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-pool")


@pytest.mark.parametrize("rows", [7, 8, 9, 10])
def test_dynamic_sizes_with_ceil_mode(rows: int) -> None:
    x, y = "tensor<1x2x?x9xf32>", "tensor<1x2x?x5xf32>"
    module = parse_module(
        f"func.func @main(%x: {x}) -> ({y}, {y}) {{\n"
        f"  %a = mico.avgpool2d(%x) {{kernel_size = [3, 3], stride = [2, 2], padding = [1, 1],"
        f" ceil_mode = true, count_include_pad = false}} : ({x}) -> {y}\n"
        f"  %b = mico.maxpool2d(%x) {{kernel_size = [3, 3], stride = [2, 2], padding = [1, 1],"
        f" ceil_mode = true}} : ({x}) -> {y}\n"
        f"  func.return %a, %b : {y}, {y}\n}}"
    )
    check(module, np.random.default_rng(0).normal(size=(1, 2, rows, 9)).astype(np.float32))


def test_maximum_of_integers() -> None:
    x, y = "tensor<1x1x2x4x!mico.int<2>>", "tensor<1x1x2x3x!mico.int<2>>"
    module = parse_module(
        f"func.func @main(%x: {x}) -> {y} {{\n"
        f"  %y = mico.maxpool2d(%x) {{kernel_size = [2, 2], stride = [2, 2], padding = [1, 1]}}"
        f" : ({x}) -> {y}\n"
        f"  func.return %y : {y}\n}}"
    )
    (y,) = check(module, np.array([[[[-2, -1, 0, 1], [-2, -2, -2, -1]]]], np.int8))
    assert y.tolist() == [[[[-2, 0, 1], [-2, -2, -1]]]]
