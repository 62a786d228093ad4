"""Softmax as it is compiled: rows with a NaN, an infinity, or nothing that is seen."""

from __future__ import annotations

import numpy as np

import fewbit
from fewbit.program.program import Program

ROW = 40


def test_rows_without_a_largest_number_are_nan() -> None:
    type = f"tensor<6x{ROW}xf32>"
    program = Program.parse(
        f"func.func @main(%x: {type}) -> {type} {{\n"
        f"  %y = mico.softmax(%x) : ({type}) -> {type}\n  func.return %y : {type}\n}}"
    )
    x = np.random.default_rng(0).standard_normal((6, ROW)).astype(np.float32)
    x[0, 3] = x[1, ROW - 1] = np.nan
    x[2] = -np.inf
    x[3, 7] = np.inf
    x[4, 1:] = -np.inf
    y = fewbit.compile(program)(x)
    assert np.isnan(y[:4]).sum(1).tolist() == [ROW, ROW, ROW, ROW]
    assert y[4].tolist() == [1.0] + [0.0] * (ROW - 1)
    (expected,) = program.run(x)
    assert np.array_equal(y, expected, equal_nan=True)
