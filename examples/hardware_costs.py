# pyright: basic
"""What widths cost on two kinds of hardware, before anything is built.

LeNet at several recipes: cycles and energy on BitFusion, cycles on two RISC-V cores with MiCo's dot
products. Fewer bits help BitFusion in steps, since its multipliers have 2, 4 or 8 bits.
"""

from __future__ import annotations

import numpy as np
import torch

import fewbit
from fewbit.analysis.cycles.layers import program_cycles
from fewbit.artifact import open_folder
from fewbit.models import create
from fewbit.targets.registry import find_target

RECIPES = ("w8a8", "w6a8", "w4a8", "w4a4", "w2a2")


def main() -> None:
    images = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    program = fewbit.import_model(create("lenet"), (torch.from_numpy(images),))
    print(f"{'recipe':8} {'BitFusion':>10} {'uJ':>7} {'small':>10} {'high':>10}")
    for recipe in RECIPES:
        quantized = fewbit.quantize(program, recipe)
        artifact = fewbit.compile(quantized, "bitfusion")
        runner = find_target("bitfusion").load(open_folder(artifact.folder))
        execution = runner.execute(images)
        assert np.array_equal(execution.outputs[0], quantized.run(images)[0])
        (cost,) = runner.estimate(execution.events)
        cores = [
            sum(layer.estimate.cycles for layer in program_cycles(core, quantized, [images]))
            for core in ("small", "high")
        ]
        line = f"{recipe:8} {cost.cycles:10,.0f} {(cost.energy or 0) / 1e6:7.1f}"
        print(f"{line} {cores[0]:10,.0f} {cores[1]:10,.0f}")


if __name__ == "__main__":
    main()
