from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.numerics import WIDTHS, Width, quantize_weight
from tests.passes.lowering import RANDOM, check, check_random, constants, lower


@pytest.mark.parametrize("kind", ["mico.embedding"])
@RANDOM
@given(data=st.data())
def test_random_ops(kind: str, data: st.DataObject) -> None:
    check_random(data, kind, "lower-embedding")


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_rows_of_a_packed_table(width: Width) -> None:
    rng = np.random.default_rng(0)
    table = rng.standard_normal((7, 10), dtype=np.float32)
    w = quantize_weight(table, width, granularity="group", group=5)
    module = parse_module(
        constants("w", w) + "func.func @main(%i: tensor<?x2xi64>) -> tensor<?x2x10xf32> {\n"
        "  %y = mico.embedding(%i, @w) : (tensor<?x2xi64>) -> tensor<?x2x10xf32>\n"
        "  func.return %y : tensor<?x2x10xf32>\n}"
    )
    indices = np.array([[0, 6], [3, 3], [5, 1]], np.int64)
    (y,) = check(module, indices)
    np.testing.assert_array_equal(y, w.dequantize()[indices])
    lowered = print_module(lower(module))
    assert lowered.count("linalg.generic") == 1, "the table is not unpacked"
