"""One network on every kind of hardware: the same results.

Floats between layers have the same bits everywhere, so no integer behind them differs, and outputs
agree to the rounding of what follows the last layer.
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

HARDWARE = ("vexii", "gemmini", "bitfusion")
TO_THE_BIT = {"lenet": "[[8,6,6,4,4],[8,8,8,8,8]]", "resnet8": "w8a8", "ds-cnn": "w4a8"}
QUICK = ("lenet",)
LARGER = ("llama-15m",)
"""Models that are another of the zoo, only larger."""


def names() -> list[Any]:
    slow = pytest.mark.slow
    return [
        pytest.param(name, marks=() if name in QUICK else slow)
        for name in zoo()
        if name not in LARGER
    ]


def quantized(name: str) -> tuple[Program, Sequence[np.ndarray], np.ndarray]:
    recipe = TO_THE_BIT.get(name, "w8a8")
    program = fewbit.quantize(fold_batch_norm(fewbit.import_model(f"zoo:{name}")), recipe)
    inputs = made_up_inputs(program)
    return program, inputs, program.run(*inputs)[0]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", names())
def test_every_model_gives_the_same_on_every_kind_of_hardware(name: str) -> None:
    program, inputs, wanted = quantized(name)
    for target in ("cpu", *HARDWARE):
        found: Any = fewbit.compile(program, target=target, name="net").run(*inputs)[0]
        if name in TO_THE_BIT and target in HARDWARE:
            assert np.array_equal(found, wanted), target
        bound = 1e-5 * np.abs(wanted).max()
        assert np.abs(found - wanted).max() <= bound, target
