"""One network at several widths on VexiiRiscv: instructions, dot products, estimated cycles.

The cycles are of the program as fewbit compiles it. `hardware_costs.py` has those of MiCo's library
beside them, which are of its layers alone and several times as many.

python examples/vexii_widths.py zoo:lenet w8a8 w4a4 w2a2 w1a1
"""

from __future__ import annotations

import sys

import numpy as np

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.targets.device_report import table


def main(name: str, recipes: list[str]) -> None:
    floats = fold_batch_norm(fewbit.import_model(name))
    rows: list[list[str]] = []
    for recipe in recipes:
        program = fewbit.quantize(floats, recipe)
        inputs = made_up_inputs(program, dynamic=1)
        artifact = fewbit.compile(program, target="vexii")
        same = np.array_equal(artifact(*inputs), program.run(*inputs)[0])
        events = artifact.runner.events
        cycles = [f"{e.cycles:,.0f}" for e in artifact.runner.estimate(events)]
        counts = [f"{events.counts[kind]:,}" for kind in ("instructions", "dot")]
        size = f"{artifact.manifest.weight_bytes:,}"
        rows.append([recipe, *counts, *cycles, size, "yes" if same else "no"])
    cores = [f"fewbit on {core}" for core in ("small", "high", "cacheless")]
    head = ["recipe", "instructions", "dots", *cores, "weights B", "exact"]
    print(table(head, rows))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "zoo:lenet", sys.argv[2:] or ["w8a8", "w4a4"])
