from __future__ import annotations

import numpy as np
import pytest

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.numerics import integer
from fewbit.targets.vexii.kernels.conv2d import Windows, conv2d, packs_image
from fewbit.targets.vexii.kernels.matmul import Code
from fewbit.targets.vexii.layout import Layout
from tests.targets.vexii.run_kernels import call, integers, machine_with

CASES = {
    "ragged": ((8, 8), (1, 7, 9, 3), (5, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "padded": ((4, 8), (2, 6, 6, 4), (6, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "packed pixels": ((4, 4), (1, 5, 6, 16), (7, 3, 2), (1, 1), (1, 1), (1, 1), 1),
    "packed pixels, 2 bits": ((2, 8), (1, 6, 5, 16), (3, 3, 3), (2, 1), (1, 0), (1, 1), 1),
    "unequal strides and padding": ((8, 1), (1, 9, 8, 2), (4, 2, 3), (2, 3), (1, 2), (1, 1), 1),
    "dilated": ((2, 4), (1, 9, 9, 5), (3, 3, 3), (1, 1), (2, 2), (2, 3), 1),
    "groups": ((8, 2), (1, 6, 6, 8), (12, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    "groups of one channel": ((4, 2), (1, 5, 5, 3), (6, 3, 3), (1, 1), (1, 1), (1, 1), 3),
    "1 bit": ((1, 1), (1, 6, 7, 3), (5, 3, 3), (1, 1), (0, 0), (1, 1), 1),
    "1 bit, packed pixels": ((1, 1), (2, 4, 4, 32), (4, 2, 2), (1, 1), (0, 0), (1, 1), 1),
}


@pytest.mark.parametrize("xlen", [32, pytest.param(64, marks=pytest.mark.slow)])
def test_against_numpy(xlen: int) -> None:
    code, rng = Code(Processor(xlen)), np.random.default_rng(0)
    made: dict[str, tuple[str, Layout, Windows]] = {}
    for case, (bits, (_, h, w, c), (o, kh, kw), stride, padding, dilation, groups) in CASES.items():
        reach = dilation[1] * (kw - 1) + 1
        windows = Windows(
            c, o, (kh, kw), stride, padding, padding, dilation, groups,
            pixels=h * w,
            out_width=(w + 2 * padding[1] - reach) // stride[1] + 1,
        )  # fmt: skip
        layout = Layout(*bits, xlen)
        assert packs_image(layout, windows) == ("packed" in case)
        made[case] = conv2d(code, layout, windows)[0].name, layout, windows
    machine = machine_with(code, [name for name, _, _ in made.values()])
    for case, ((act, weight), shape, (o, kh, kw), *_) in CASES.items():
        name, layout, windows = made[case]
        x = integers(rng, shape, act)
        each = shape[3] // windows.groups
        w = integers(rng, (o, each, kh, kw), weight)
        top, left = windows.start
        expected = integer.conv2d(
            x.transpose(0, 3, 1, 2), w,
            stride=windows.stride, padding=((top, top), (left, left)),
            dilation=windows.dilation, groups=windows.groups,
        ).transpose(0, 2, 3, 1)  # fmt: skip
        rows = np.split(w.transpose(0, 2, 3, 1).reshape(o, -1), windows.groups)
        panels = np.concatenate([layout.panels(part) for part in rows])
        sums, _ = call(machine, name, x, panels, expected.shape, *shape[:3])
        assert (sums == expected).all(), case
