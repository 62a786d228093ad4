from __future__ import annotations

import numpy as np
import pytest

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.riscv.instructions import Kind
from fewbit.targets.vexii.kernels.matmul import Code, matmul
from fewbit.targets.vexii.layout import Layout
from tests.targets.vexii.run_kernels import PAIRS, call, integers, machine_with

SHAPES = [(1, 5, 25), (6, 9, 33), (5, 6, 255)]
MORE_SHAPES = [(1, 1, 1), (3, 7, 64), (4, 4, 128), (9, 2, 31), (2, 17, 512)]
CUBE = 64
EQUAL = [(8, 8), (4, 4), (2, 2), (1, 1)]


@pytest.mark.parametrize(
    ("xlen", "shapes"),
    [
        (32, SHAPES),
        (64, SHAPES[1:2]),
        pytest.param(32, MORE_SHAPES, marks=pytest.mark.slow),
        pytest.param(64, MORE_SHAPES, marks=pytest.mark.slow),
    ],
)
def test_all_pairs_of_widths_and_ragged_shapes(
    xlen: int, shapes: list[tuple[int, int, int]]
) -> None:
    code = Code(Processor(xlen))
    made = {
        (pair, shape): matmul(code, Layout(*pair, xlen), shape[2], shape[1], None)[0].name
        for pair in PAIRS
        for shape in shapes
    }
    machine = machine_with(code, list(made.values()))
    rng = np.random.default_rng(0)
    for ((act, weight), (m, n, k)), name in made.items():
        x, w = integers(rng, (m, k), act), integers(rng, (n, k), weight)
        sums, _ = call(machine, name, x, Layout(act, weight, xlen).panels(w), (m, n), m)
        assert (sums == x.astype(int) @ w.T.astype(int)).all(), (act, weight, m, n, k)


def test_instructions_at_64_cubed() -> None:
    """At most 3 for each dot product, all loops around included; and fewer with fewer bits."""
    code = Code(Processor(32))
    made = {pair: matmul(code, Layout(*pair), CUBE, CUBE, CUBE)[0].name for pair in PAIRS}
    machine = machine_with(code, list(made.values()))
    rng = np.random.default_rng(0)
    total: dict[tuple[int, int], int] = {}
    for (act, weight), name in made.items():
        x, w = integers(rng, (CUBE, CUBE), act), integers(rng, (CUBE, CUBE), weight)
        panels = Layout(act, weight).panels(w)
        sums, execution = call(machine, name, x, panels, (CUBE, CUBE), CUBE)
        assert (sums == x.astype(int) @ w.T.astype(int)).all()
        dots = execution.histogram[Kind.DOT]
        assert dots == CUBE**3 * max(act, weight) // 32
        tiles = sum(
            histogram.instructions
            for function, histogram in execution.by_function.items()
            if function.startswith("dot_")
        )
        assert tiles <= 3 * dots, (act, weight)
        total[act, weight] = execution.instructions
    # Sums are stored and activations packed at every width, so it is not quite one half each.
    wide, *narrower = (total[pair] for pair in EQUAL)
    assert narrower[0] < 0.58 * wide
    assert narrower[1] < 0.30 * wide
    assert narrower[2] < 0.20 * wide
