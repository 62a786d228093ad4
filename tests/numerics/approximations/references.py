"""Each formula with what it approximates, in float64, and how close it must come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.interpreter import floats
from fewbit.numerics.approximations import circular, formulas, powers

Array = npt.NDArray[Any]

SMALLEST = 2.0**-126
"""The smallest normal number of float32."""


@dataclass(frozen=True)
class Reference:
    formula: Callable[..., Any]
    exact: Callable[..., Any]
    tolerance: float = 2.5e-7
    """The largest relative error; half a unit in the last place is 6e-8."""
    reach: float = np.inf
    """Up to which size of the input that holds."""


REFERENCES: dict[str, Reference] = {
    "acos": Reference(circular.acos, np.arccos),
    "asin": Reference(circular.asin, np.arcsin),
    "atan": Reference(circular.atan, np.arctan),
    "atanh": Reference(circular.atanh, np.arctanh),
    "cbrt": Reference(powers.cbrt, np.cbrt, 6.1e-8),
    "cos": Reference(circular.cos, np.cos, reach=1e5),
    "cosh": Reference(formulas.cosh, np.cosh),
    "erf": Reference(formulas.erf, floats.erf, 4e-7),
    "erfc": Reference(formulas.erfc, floats.erfc, 3e-7),
    "exp": Reference(formulas.exp, np.exp),
    "exp2": Reference(formulas.exp2, np.exp2),
    "expm1": Reference(formulas.expm1, np.expm1),
    "log": Reference(formulas.log, np.log),
    "log10": Reference(formulas.log10, np.log10),
    "log1p": Reference(formulas.log1p, np.log1p),
    "log2": Reference(formulas.log2, np.log2),
    "rsqrt": Reference(powers.rsqrt, floats.rsqrt),
    "sin": Reference(circular.sin, np.sin, reach=1e5),
    "sinh": Reference(formulas.sinh, np.sinh),
    "tan": Reference(circular.tan, np.tan, 3e-7, reach=1e5),
    "tanh": Reference(formulas.tanh, np.tanh, 4e-7),
}

SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, SMALLEST, 3.4e38, -3.4e38], np.float32
)


def every(step: int) -> npt.NDArray[np.float32]:
    """Every `step`-th float32 of either sign, and special ones."""
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), SPECIAL])


def assert_close(
    given: Array, exact: Array, tolerance: float, checked: Array | None = None
) -> None:
    """Equal limits, NaN in the same places, and a relative error where the result is normal."""
    checked = np.ones(given.shape, bool) if checked is None else checked
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(given), np.isnan(rounded))
    infinite = np.isinf(rounded) | np.isinf(given)
    np.testing.assert_array_equal(given[infinite], rounded[infinite])
    normal = np.isfinite(rounded) & (np.abs(rounded) >= SMALLEST)
    error = np.abs(given[normal & checked] / exact[normal & checked] - 1)
    assert error.max(initial=0) <= tolerance
    small = np.isfinite(rounded) & ~normal & checked
    assert np.abs(given[small] - exact[small]).max(initial=0) <= SMALLEST
