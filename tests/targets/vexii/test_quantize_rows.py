from __future__ import annotations

import numpy as np
import pytest

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.numerics.activations import quantize_activation
from fewbit.numerics.widths import Width
from fewbit.targets.vexii.kernels.matmul import Code
from fewbit.targets.vexii.kernels.quantize_rows import quantize_rows
from tests.targets.vexii.run_kernels import machine_with

WIDTHS = (1, 1.58, *range(2, 9))


@pytest.mark.parametrize("xlen", [32, 64])
def test_as_numerics_has_it(xlen: int) -> None:
    code = Code(Processor(xlen))
    made = {bits: quantize_rows(code, Width.of(bits)).name for bits in WIDTHS}
    machine = machine_with(code, list(made.values()))
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.standard_normal((5, 37)),
            np.zeros((1, 37)),
            rng.integers(-127, 128, (4, 37)) / 2,  # half-way between integers
            rng.standard_normal((2, 37)) * 1e-7,
            rng.standard_normal((2, 37)) * 1e30,
        ]
    ).astype(np.float32)
    # Means of 1, so that there are elements at and around the bounds -1.5, -0.5 and 0.5.
    near = np.array([-1.5, -0.5, 0.5, 1.5, -0.0, 0.0], np.float32)
    near = np.concatenate([np.nextafter(near, np.float32(9)), near, np.nextafter(near, -near * 9)])
    rest = np.full(37 - near.size, (37 - np.abs(near).sum()) / (37 - near.size))
    x = np.concatenate([x, [np.concatenate([near, rest]) * s for s in (1, 0.3, 1e-4, 7.1)]])
    x = x.astype(np.float32)
    at = -(-machine.end // 64) * 64
    values_at, scales_at = at + 4096, at + 8192
    for bits, name in made.items():
        machine.write(at, x.tobytes())
        machine.call(name, at, values_at, scales_at, *x.shape)
        expected = quantize_activation(x, bits, granularity="row")
        values = np.frombuffer(machine.read(values_at, x.size), np.int8).reshape(x.shape)
        scales = np.frombuffer(machine.read(scales_at, 4 * len(x)), np.float32)
        assert (values == expected.values).all(), bits
        assert (scales == expected.scale).all(), bits
