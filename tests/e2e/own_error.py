"""How far PyTorch's float32 is from its float64: deep networks magnify roundings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fewbit.base.typed_torch import from_numpy
from fewbit.models import create
from tests.e2e.layerwise import ROUNDING, relative
from tests.precisions import in_both_precisions


def own_error(name: str, inputs: Sequence[np.ndarray]) -> float:
    """Return the error of a zoo model's results in PyTorch itself."""
    ((given, wide),) = in_both_precisions(create(name).eval(), list(map(from_numpy, inputs)))
    return relative(given, wide)


def assert_rounds_alike(
    name: str, inputs: Sequence[np.ndarray], found: np.ndarray, expected: np.ndarray
) -> None:
    """Floats agree within rounding, or are both as far from the truth as PyTorch is."""
    error = relative(found, expected)
    assert error < ROUNDING or error < 2 * own_error(name, inputs)
