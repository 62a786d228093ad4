"""Scales that are means of magnitudes have the same bits on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import fewbit
from tests.numerics.ties import runs_at_ties

TARGETS = ("cpu", "iree-cpu", "vexii", "vexii:rv64", "gemmini", "bitfusion")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [8, 64, 2048])
def test_one_order_of_summation(target: str, length: int) -> None:
    model = torch.nn.Linear(length, 3, bias=False)
    x = runs_at_ties(12, length)
    program = fewbit.quantize(model, "w2a2", example_inputs=(torch.tensor(x),))
    (expected,) = program.run(x)
    given: Any = fewbit.compile(program, target=target, name="net")(x)
    np.testing.assert_array_equal(given, expected)
