"""The quantization formulas, for a matrix of runs: one scale per row.

Weights and activations share them; they differ only in how a tensor is cut into runs. Everything
is computed in float32, one IEEE operation for each one written, so that any target can repeat it:
`w·S` with `S = qmax / max|w|` divides once and multiplies once. The sum for mean|w| is one of
float64, in the order that `mean_magnitude` fixes. Rounding is half-to-even.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fewbit.errors import Error, ShapeError, UsageError, WidthError
from fewbit.numerics.arrays import Float32Array, Int8Array, Int32Array
from fewbit.numerics.mean_magnitude import mean_magnitude
from fewbit.numerics.widths import Mode, Width

EPS = np.float32(1e-5)
"""Bounds max|x|, mean|x| and max - min from below, so that no scale is zero."""


def symmetric(runs: Float32Array, width: Width, mode: Mode) -> tuple[Int8Array, Float32Array]:
    """Return values and one scale per run, by the table of symmetric formulas."""
    _check_not_empty(runs)
    check_mode(mode)
    uses_mean = mode == "mean" or width.bits <= 2
    statistic = mean_magnitude(runs) if uses_mean else max_magnitude(runs)
    magnitude: Float32Array = np.maximum(statistic, EPS)
    if width.bits <= 2:
        return with_scale(runs, width, magnitude), magnitude
    multiplier: Float32Array = np.float32(width.qmax) / magnitude
    return _round(runs * multiplier[:, None], width), np.float32(1) / multiplier


def asymmetric(runs: Float32Array, width: Width) -> tuple[Int8Array, Float32Array, Int32Array]:
    """Return values, scale and zero point per run; the range includes 0, which is exact."""
    _check_not_empty(runs)
    check_asymmetric(width)
    low = np.minimum(runs.min(axis=1), np.float32(0))
    high = np.maximum(runs.max(axis=1), np.float32(0))
    with np.errstate(over="ignore"):
        span = np.maximum(high - low, EPS)
    _check_span(span)
    scale = span / np.float32((1 << width.bits) - 1)
    zero_point = _clamp(np.rint(np.float32(width.qmin) - low / scale), width).astype(np.int32)
    return with_scale(runs, width, scale, zero_point), scale, zero_point


def from_lowest(runs: Float32Array, width: Width) -> tuple[Int8Array, Float32Array, Float32Array]:
    """Return values, scale and offset per run: the lowest is the offset, the highest all steps."""
    _check_not_empty(runs)
    low = runs.min(axis=1)
    with np.errstate(over="ignore"):
        span = np.maximum(runs.max(axis=1) - low, EPS)
    _check_span(span)
    scale = span / np.float32((1 << width.bits) - 1)
    return with_offset(runs, width, scale, low), scale, low


def with_offset(
    runs: Float32Array, width: Width, scale: Float32Array, offset: Float32Array
) -> Int8Array:
    """Quantize under given scales and offsets: clamp(round((x - m) / s) + qmin)."""
    lowest = np.full(len(runs), width.qmin, np.int32)
    return with_scale(runs - offset.reshape(-1, 1), width, scale, lowest)


def with_scale(
    runs: Float32Array,
    width: Width,
    scale: Float32Array,
    zero_point: Int32Array | None = None,
) -> Int8Array:
    """Quantize under given scales (one per run, or one for all): clamp(round(x / s) + z)."""
    if width.is_binary:
        return np.where(runs >= 0, np.int8(1), np.int8(-1))
    with np.errstate(over="ignore"):
        quotient = runs / scale.reshape(-1, 1)
    return _round(quotient, width, zero_point)


def max_magnitude(runs: Float32Array) -> Float32Array:
    """Return max|x| of each run."""
    return np.maximum(runs.max(axis=1), -runs.min(axis=1))


def check_mode(mode: Mode) -> None:
    if mode not in ("max", "mean"):
        raise UsageError(f"there is no mode '{mode}'", hint="modes are 'max' and 'mean'")


def check_asymmetric(width: Width) -> None:
    if width.is_binary or width.is_ternary:
        raise WidthError(
            f"{width} bits cannot be asymmetric", hint="zero points need a width of 2 to 8"
        )


def _check_span(span: Float32Array) -> None:
    if not np.isfinite(span).all():
        raise Error("the range max - min does not fit float32", hint="scale the values down")


def _check_not_empty(runs: Float32Array) -> None:
    if runs.shape[1] == 0:
        raise ShapeError("no scale can be taken from an empty tensor", hint="give static scales")


def _round(x: Float32Array, width: Width, zero_point: Int32Array | None = None) -> Int8Array:
    np.rint(x, out=x)
    if zero_point is not None:
        x += zero_point.reshape(-1, 1).astype(np.float32)
    return _clamp(x, width).astype(np.int8)


def _clamp(x: Float32Array, width: Width) -> npt.NDArray[np.float32]:
    return np.clip(x, np.float32(width.qmin), np.float32(width.qmax), out=x)
