"""One network on every kind of hardware: the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fewbit
from fewbit.models import zoo
from fewbit.passes.graph.fold_batch_norm import fold_batch_norm

TARGETS = ("vexii", "gemmini", "bitfusion")


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("lenet", "[[8,6,6,4,4],[8,8,8,8,8]]"),
        pytest.param("resnet8", "w8a8", marks=pytest.mark.slow),
        pytest.param("ds-cnn", "w4a8", marks=pytest.mark.slow),
    ],
)
def test_hardware_targets_agree_to_the_bit(name: str, recipe: str) -> None:
    program = fewbit.quantize(fold_batch_norm(fewbit.import_model(f"zoo:{name}")), recipe)
    x = [array.numpy() for array in zoo()[name].example_inputs(1, seed=3)]
    (wanted,) = program.run(*x)
    for target in TARGETS:
        found: Any = fewbit.compile(program, target=target, name="net")(*x)
        assert np.array_equal(found, wanted), target
    native: Any = fewbit.compile(program, name="net")(*x)
    np.testing.assert_allclose(native, wanted, rtol=1e-5, atol=1e-6)
