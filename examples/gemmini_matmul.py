"""A matmul on a Gemmini, three ways: loops, single commands, and the output-stationary dataflow.

All three give the same sums. What differs is how many commands the host sends.
"""

from __future__ import annotations

import numpy as np

from fewbit.simulators.gemmini.model import Model
from fewbit.targets.gemmini.streams.matmul import Matmul, Style, matmul

PLACES = {"x": 0x1_0000, "weight": 0x2_0000, "y": 0x4_0000}
STYLES: tuple[Style, ...] = ("loop", "explicit", "output-stationary")


def main() -> None:
    rng = np.random.default_rng(0)
    problem = Matmul(m=100, n=60, k=200)
    x = rng.integers(-128, 128, (problem.m, problem.k), dtype=np.int8)
    weight = rng.integers(-128, 128, (problem.k, problem.n), dtype=np.int8)
    for style in STYLES:
        memory = np.zeros(1 << 20, np.uint8)
        for name, array in (("x", x), ("weight", weight)):
            memory[PLACES[name] : PLACES[name] + array.size] = array.view(np.uint8).ravel()
        model = Model()
        stream = matmul(problem, style=style)
        model.run_all([command.bind(PLACES) for command in stream], memory)
        size = 4 * problem.m * problem.n
        y = memory[PLACES["y"] : PLACES["y"] + size].view(np.int32).reshape(problem.m, problem.n)
        assert np.array_equal(y, x.astype(np.int32) @ weight.astype(np.int32))
        events = model.events
        print(
            f"{style}: {events.commands} commands sent, {sum(events.executed.values())} carried "
            f"out, {events.utilization(model.hardware):.0%} of the array used"
        )
    print(*matmul(problem), sep="\n")


if __name__ == "__main__":
    main()
