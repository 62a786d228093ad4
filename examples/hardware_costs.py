# pyright: basic
"""What widths cost on two kinds of hardware, before anything is built.

LeNet at several recipes: cycles and energy on BitFusion, and cycles on two RISC-V cores with MiCo's
dot products, once of the layers with MiCo's own library, once of the whole program as fewbit
compiles it. Fewer bits help BitFusion in steps, since its multipliers have 2, 4 or 8 bits.
"""

from __future__ import annotations

import numpy as np
import torch

import fewbit
from fewbit.cost.cycles.layers import program_cycles
from fewbit.models import create
from fewbit.program.artifact import open_folder
from fewbit.targets.registry import find_target

RECIPES = ("w8a8", "w6a8", "w4a8", "w4a4", "w2a2")


def main() -> None:
    images = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    program = fewbit.import_model(create("lenet"), (torch.from_numpy(images),))
    print(f"{'':8} {'BitFusion':>18} {'MiCo-Lib on':>21} {'fewbit on':>21}")
    names = ("cycles", "uJ", "small", "high", "small", "high")
    print(f"{'recipe':8} " + " ".join(f"{name:>{7 if name == 'uJ' else 10}}" for name in names))
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
        compiled = fewbit.compile(quantized, "vexii")
        assert np.array_equal(compiled(images), quantized.run(images)[0])
        small, high, _ = compiled.runner.estimate(compiled.runner.events)
        line = f"{recipe:8} {cost.cycles:10,.0f} {(cost.energy or 0) / 1e6:7.1f}"
        print(line, *(f"{cycles:10,.0f}" for cycles in (*cores, small.cycles, high.cycles)))


if __name__ == "__main__":
    main()
