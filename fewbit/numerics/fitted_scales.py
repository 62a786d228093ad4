"""Scales of weights that are fitted to them, beside the formulas that activations share.

`signed-max` uses all levels of a width: the element of largest magnitude becomes -2^(b-1), whatever
its sign is, so scales may be negative (GGUF's Q4_0 has this rule). `mse` tries the scale of `max`
and smaller ones, and takes that with the least Σ(w - u·s)²; of equal ones, the largest. Differences
are of float32, their squares exact in float64, and added in the order of `mean_magnitude`: the
choice is the same everywhere.
"""

from __future__ import annotations

import numpy as np

from fewbit.errors import UsageError
from fewbit.numerics import formulas
from fewbit.numerics.arrays import Float32Array, Int8Array
from fewbit.numerics.mean_magnitude import sum_magnitudes
from fewbit.numerics.widths import WeightMode, Width

CANDIDATES = tuple(1 - step / 32 for step in range(16))
"""What the scale of `max` is multiplied by, from the largest."""
FITTED = ("mse", "signed-max")


def fit_scales(
    runs: Float32Array, width: Width, mode: WeightMode
) -> tuple[Int8Array, Float32Array]:
    """Return values and one scale per run, by any mode of weights."""
    if mode == "max" or mode == "mean":
        return formulas.symmetric(runs, width, mode)
    check_fitted(width, mode)
    scale = signed_scale(runs, width) if mode == "signed-max" else least_error_scale(runs, width)
    return formulas.with_scale(runs, width, scale), scale


def check_fitted(width: Width, mode: WeightMode) -> None:
    """Refuse widths that have no such mode."""
    if mode not in FITTED:
        raise UsageError(
            f"there is no mode '{mode}'",
            hint="modes are 'max', 'mean', 'mse', 'signed-max' and 'offset'",
        )
    if width.bits <= 2:
        raise UsageError(
            f"{width} bits have no mode '{mode}'", hint="narrow weights are scaled by mean|w|"
        )


def signed_scale(runs: Float32Array, width: Width) -> Float32Array:
    """Return -w* / 2^(b-1), w* the element of largest magnitude; of two, the positive one."""
    low: Float32Array = np.minimum(runs.min(axis=1), -formulas.EPS)
    high: Float32Array = np.maximum(runs.max(axis=1), formulas.EPS)
    star: Float32Array = np.where(high >= -low, high, low)
    return star / np.float32(width.qmin)


def least_error_scale(runs: Float32Array, width: Width) -> Float32Array:
    """Return the candidate with the least squared error, for each run."""
    magnitude: Float32Array = np.maximum(formulas.max_magnitude(runs), formulas.EPS)
    largest = np.float32(1) / (np.float32(width.qmax) / magnitude)
    best, least = largest, np.full(len(runs), np.inf)
    for candidate in CANDIDATES:
        scale = largest * np.float32(candidate)
        values = formulas.with_scale(runs, width, scale).astype(np.float32)
        with np.errstate(over="ignore"):
            difference = (runs - values * scale[:, None]).astype(np.float64)
        error = sum_magnitudes(difference * difference)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    return best
