# pyright: basic
"""Every zoo model compiled for IREE on this machine's processor, against the interpreter.

As for the `cpu` target: floats agree within rounding, quantized networks as far as float ops
between layers round alike. With and without kernels of ours in the module.
"""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.analysis.layers import made_up_inputs
from fewbit.models import zoo
from fewbit.quant.quantize import quantize
from fewbit.transforms.fold_batch_norm import fold_batch_norm

QUICK = (("mlp", None, False), ("lenet", "w8a8", False))
ROUNDING = 2e-5


def cases() -> list:
    every = [
        (name, recipe, kernels)
        for name in zoo()
        for recipe in (None, "w8a8", "w4a8")
        for kernels in (False, True)
    ]
    return [pytest.param(*c, marks=() if c in QUICK else pytest.mark.slow) for c in every]


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())


def typical(values: np.ndarray) -> float:
    """Their root mean square: which single value moves most is a matter of luck."""
    return float(np.sqrt(np.square(values.astype(np.float64)).mean()))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "recipe", "kernels"), cases())
def test_zoo(name: str, recipe: str | None, kernels: bool) -> None:
    floats = fold_batch_norm(fewbit.import_model(f"zoo:{name}"))
    program = floats if recipe is None else quantize(floats, recipe)
    inputs = made_up_inputs(program)
    art = fewbit.compile(program, "iree-cpu", name="net", kernels=kernels)
    (found, *_), (expected, *_) = art.run(*inputs), program.run(*inputs)
    if recipe is None:
        assert relative(found, expected) <= ROUNDING
        return
    noise = typical(expected - floats.run(*inputs)[0])
    assert typical(found - expected) <= max(noise, ROUNDING * typical(expected))
