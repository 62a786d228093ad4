from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewbit.riscv.simulator.machine import Machine
from fewbit.targets.vexii.kernels.products import Code, matmul
from fewbit.targets.vexii.layout import Layout
from fewbit.targets.vexii.processor import Processor
from tests.targets.vexii.run_products import PAIRS, call, integers, machine_with

SHAPES = [(1, 1, 1), (1, 5, 25), (3, 7, 64), (6, 9, 33), (4, 4, 128), (5, 6, 255)]
CUBE = 64


@pytest.mark.parametrize("xlen", [32, 64])
def test_all_pairs_of_widths_and_ragged_shapes(xlen: int) -> None:
    code = Code(Processor(xlen))
    made = {
        (pair, shape): matmul(code, Layout(*pair, xlen), shape[2], shape[1], None)[0].name
        for pair in PAIRS
        for shape in SHAPES
    }
    machine = machine_with(code, list(made.values()))
    rng = np.random.default_rng(0)
    for ((act, weight), (m, n, k)), name in made.items():
        x, w = integers(rng, (m, k), act), integers(rng, (n, k), weight)
        sums, _ = call(machine, name, x, Layout(act, weight, xlen).panels(w), (m, n), m)
        assert (sums == x.astype(int) @ w.T.astype(int)).all(), (act, weight, m, n, k)
