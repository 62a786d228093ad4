"""From int32 accumulators to the next layer's integers, with no float tensor in between.

The multiplier is s_x · s_w / s_y. Either it stays float32 (`requantize`: the accumulator is
converted to float32 and multiplied, two rounded operations every target has), or it becomes a
fixed-point number (`requantize_fixed`: integers only, exact until its one rounding). A float32
has 24 significant bits, so its fixed-point form loses nothing. Both round half to even and clamp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, WidthError
from fewbit.numerics.arrays import (
    Float32Array,
    Int8Array,
    Int32Array,
    IntArray,
    finite_float32,
    integers,
)
from fewbit.numerics.formulas import check_asymmetric
from fewbit.numerics.widths import Width, WidthLike

_MAX_SHIFT = 62
_Factors = TypeVar("_Factors", Float32Array, Int32Array)


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """`multiplier · 2^-shift`, one or one per channel; |multiplier| < 2^31, 0 <= shift <= 62.

    The product with an int32 accumulator thus fits int64, and so does its rounding.
    """

    multiplier: Int32Array
    shift: Int32Array

    def __post_init__(self) -> None:
        if self.multiplier.shape != self.shift.shape:
            raise ShapeError(
                f"multipliers of shape {self.multiplier.shape} do not fit shifts of shape "
                f"{self.shift.shape}"
            )
        if self.shift.size and (self.shift.min() < 0 or self.shift.max() > _MAX_SHIFT):
            raise WidthError(f"a fixed-point shift must be 0 to {_MAX_SHIFT}")


def fixed_point(multiplier: npt.ArrayLike) -> FixedPoint:
    """Return the fixed-point form of float32 multipliers.

    It is exact where the size matters. Below 2^-32 every accumulator rounds to 0, and from 2^31
    every one but 0 saturates, so there only the sign and an extreme are kept.
    """
    array = finite_float32(multiplier, "requantization multiplier")
    fraction, exponent = np.frexp(array)
    mantissa = np.ldexp(fraction.astype(np.float64), 31).astype(np.int64)
    shift = 31 - exponent.astype(np.int64)
    mantissa = np.where(shift > _MAX_SHIFT, np.sign(mantissa), mantissa)
    return FixedPoint(
        np.asarray(mantissa, np.int32), np.asarray(np.clip(shift, 0, _MAX_SHIFT), np.int32)
    )


def requantize(
    acc: npt.ArrayLike,
    multiplier: npt.ArrayLike,
    width: WidthLike,
    zero_point: int | None = None,
    *,
    axis: int = -1,
) -> Int8Array:
    """Return clamp(round(float32(acc) · multiplier) + z); at 1 bit the sign, with +1 for 0.

    The multiplier is one float32, or one per channel along `axis`.
    """
    sums = _accumulators(acc)
    width = Width.of(width)
    factor = _broadcast_along(finite_float32(multiplier, "requantization multiplier"), sums, axis)
    if width.is_binary:
        return _clamp(np.sign(sums) * np.sign(factor), width, zero_point)
    with np.errstate(over="ignore"):
        product = sums.astype(np.float32) * factor
    return _clamp(np.rint(product), width, zero_point)


def requantize_fixed(
    acc: npt.ArrayLike,
    fixed: FixedPoint,
    width: WidthLike,
    zero_point: int | None = None,
    *,
    axis: int = -1,
) -> Int8Array:
    """Return clamp(round(acc · multiplier / 2^shift) + z), in integers; at 1 bit the sign."""
    sums = _accumulators(acc)
    width = Width.of(width)
    product = sums.astype(np.int64) * _broadcast_along(fixed.multiplier, sums, axis).astype(
        np.int64
    )
    if width.is_binary:
        return _clamp(product, width, zero_point)
    shift = _broadcast_along(fixed.shift, sums, axis).astype(np.int64)
    return _clamp(_rounding_shift(product, shift), width, zero_point)


def _rounding_shift(x: npt.NDArray[np.int64], shift: npt.NDArray[np.int64]) -> IntArray:
    """Return x / 2^shift, rounded half to even: floor, then up by the remainder."""
    floor = x >> shift
    twice_remainder = (x - (floor << shift)) << 1
    unit = np.int64(1) << shift
    up = (twice_remainder > unit) | ((twice_remainder == unit) & (floor & 1 == 1))
    return floor + up


def _accumulators(acc: npt.ArrayLike) -> Int32Array:
    array = integers(acc, "accumulator")
    limits = np.iinfo(np.int32)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        raise WidthError("an accumulator does not fit int32")
    return array.astype(np.int32, copy=False)


def _broadcast_along(factors: _Factors, acc: Int32Array, axis: int) -> _Factors:
    """Reshape factors to broadcast over the accumulators: one, or one per index of `axis`."""
    if factors.size == 1:
        return factors.reshape(())
    if not -acc.ndim <= axis < acc.ndim or factors.shape != (acc.shape[axis],):
        raise ShapeError(
            f"multipliers of shape {factors.shape} do not fit axis {axis} of accumulators of "
            f"shape {acc.shape}",
            hint="give one multiplier, or one per channel along the axis",
        )
    shape = [1] * acc.ndim
    shape[axis] = -1
    return factors.reshape(shape)


def _clamp(values: npt.NDArray[Any], width: Width, zero_point: int | None) -> Int8Array:
    if zero_point is not None:
        check_asymmetric(width)
        if not width.qmin <= zero_point <= width.qmax:
            raise WidthError(f"the zero point {zero_point} does not fit {width} bits")
        values = values + zero_point
    if width.is_binary:
        return np.where(values >= 0, np.int8(1), np.int8(-1))
    return np.clip(values, width.qmin, width.qmax).astype(np.int8)
