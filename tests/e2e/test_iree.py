"""Every zoo model compiled for IREE on this machine's processor, against the interpreter.

As for the `cpu` target: floats agree within rounding, or within what rounding is in PyTorch itself,
and quantized networks layer by layer. IREE scales
and adds in one rounding where numerics has two, so its layers are not the interpreter's to the bit.
With and without kernels of ours in the module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.cost.layers import made_up_inputs
from fewbit.models import zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm
from fewbit.program.program import Program
from fewbit.quant.quantize import quantize
from tests.e2e.layerwise import assert_layers_agree
from tests.e2e.own_error import assert_rounds_alike

QUICK = (("mlp", None, False), ("lenet", "w8a8", False))
LAST_BITS = 5e-7
"""The error of a layer, relative to its largest result."""


def cases() -> list[Any]:
    every = [
        (name, recipe, kernels)
        for name in zoo()
        for recipe in (None, "w8a8", "w4a8")
        for kernels in (False, True)
    ]
    return [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in every]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "recipe", "kernels"), cases())
def test_zoo(name: str, recipe: str | None, kernels: bool) -> None:
    floats = fold_batch_norm(fewbit.import_model(f"zoo:{name}"))
    program = floats if recipe is None else quantize(floats, recipe)
    inputs = made_up_inputs(program)

    def run(program: Program) -> Sequence[np.ndarray]:
        return fewbit.compile(program, "iree-cpu", name="net", kernels=kernels).run(*inputs)

    if recipe is not None:
        assert_layers_agree(program, inputs, run, LAST_BITS)
        return
    for found, expected in zip(run(program), program.run(*inputs), strict=True):
        assert_rounds_alike(name, inputs, found, expected)
