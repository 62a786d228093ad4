from __future__ import annotations

import numpy as np
import pytest

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.numerics import integer
from fewbit.targets.vexii.kernels.conv2d import Windows
from fewbit.targets.vexii.kernels.depthwise import Depthwise, depthwise
from fewbit.targets.vexii.kernels.matmul import Code
from tests.targets.vexii.run_kernels import call, integers, machine_with

CASES = {
    "3x3": ((2, 7, 9, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
    "of few columns": ((1, 25, 5, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
    "of stride 2": ((1, 9, 11, 3), (3, 3), (2, 2), (1, 0), (1, 1)),
    "of stride 3": ((1, 9, 17, 2), (2, 5), (1, 3), (0, 2), (1, 1)),
    "large": ((1, 8, 12, 2), (5, 7), (1, 1), (2, 3), (1, 1)),
    "dilated": ((1, 11, 13, 2), (3, 3), (2, 1), (2, 2), (2, 3)),
    "of many channels": ((1, 5, 6, 600), (3, 3), (1, 1), (1, 1), (1, 1)),
    "of long rows": ((1, 3, 1500, 2), (3, 3), (1, 1), (1, 1), (1, 1)),
}


@pytest.mark.parametrize("xlen", [32, pytest.param(64, marks=pytest.mark.slow)])
def test_against_numpy(xlen: int) -> None:
    code, rng = Code(Processor(xlen)), np.random.default_rng(0)
    made: dict[str, tuple[str, Depthwise]] = {}
    for case, ((_, h, w, c), size, stride, padding, dilation) in CASES.items():
        windows = Windows(c, c, size, stride, padding, padding, dilation, c, h * w, None)
        plane = Depthwise(windows, h, w, xlen)
        made[case] = depthwise(code, plane)[0].name, plane
    machine = machine_with(code, [name for name, _ in made.values()])
    for case, (shape, size, stride, (top, left), dilation) in CASES.items():
        name, plane = made[case]
        x, w = integers(rng, shape, 8), integers(rng, (shape[3], 1, *size), 8)
        expected = integer.conv2d(
            x.transpose(0, 3, 1, 2), w, stride, ((top, top), (left, left)), dilation, shape[3]
        ).transpose(0, 2, 3, 1)
        sums, execution = call(machine, name, x, plane.pack(w), expected.shape, *shape[:3])
        assert (sums == expected).all(), case
        if case == "3x3":
            assert execution.instructions < 30 * expected.size
