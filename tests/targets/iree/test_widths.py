"""Weights of every width, on matrices and images of odd sizes: the interpreter's numbers, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.program.program import Program
from tests.targets.iree.drivers import needs_vulkan
from tests.targets.iree.networks import WIDTHS, convolutions, linear

SLOW = pytest.mark.slow
CASES = [
    pytest.param(linear, "iree-cpu", id="linear"),
    pytest.param(lambda: linear(25, 31), "iree-cpu", id="linear-25", marks=SLOW),
    pytest.param(convolutions, "iree-cpu", id="convolutions"),
    pytest.param(linear, "iree-vulkan", id="linear-vulkan", marks=[needs_vulkan, SLOW]),
    pytest.param(lambda: linear(25, 31), "iree-vulkan", id="linear-25-vulkan", marks=needs_vulkan),
    pytest.param(convolutions, "iree-vulkan", id="convolutions-vulkan", marks=[needs_vulkan, SLOW]),
]


@pytest.mark.parametrize(("make", "target"), CASES)
def test_every_width(make: Callable[[], Program], target: str) -> None:
    program = make()
    inputs = made_up_inputs(program)
    art = fewbit.compile(program, target, name="net")
    results, expected = art.run(*inputs), program.run(*inputs)
    assert len(results) == len(WIDTHS)
    for width, a, b in zip(WIDTHS, results, expected, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"weights of {width} bits")


def test_weights_are_packed_in_the_archive() -> None:
    program = linear(64, 32)
    manifest = fewbit.compile(program, "iree-cpu", name="net").manifest
    sizes = {c.name: np.prod(c.shape) for c in manifest.weights}
    for i, bits in enumerate((1, 2, 2, 3, 4, 5, 6, 7, 8)):
        assert sizes[f"layers.{i}.weight"] == 32 * 64 * bits // 8
