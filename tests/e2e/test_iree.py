# pyright: basic
"""Every zoo model compiled for IREE on this machine's processor, against the interpreter.

As for the `cpu` target: floats agree within rounding, quantized networks as far as float ops
between layers round alike.
"""

from __future__ import annotations

import numpy as np
import pytest

import fewbit
from fewbit.analysis.layers import made_up_inputs
from fewbit.models import zoo
from fewbit.quant.quantize import quantize
from fewbit.transforms.fold_batch_norm import fold_batch_norm

QUICK = ("mlp", "lenet")
ROUNDING = 2e-5


def names() -> list:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in zoo()]


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found.astype(np.float64) - expected).max() / np.abs(expected).max())


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("recipe", [None, "w8a8", "w4a8"])
@pytest.mark.parametrize("name", names())
def test_zoo(name: str, recipe: str | None) -> None:
    floats = fold_batch_norm(fewbit.import_model(f"zoo:{name}"))
    program = floats if recipe is None else quantize(floats, recipe)
    inputs = made_up_inputs(program)
    art = fewbit.compile(program, "iree-cpu", name="net")
    (found, *_), (expected, *_) = art.run(*inputs), program.run(*inputs)
    bound = ROUNDING
    if recipe is not None:
        bound = max(bound, relative(expected, floats.run(*inputs)[0]))
    assert relative(found, expected) <= bound
