"""A quantized tensor: integers, their scales, and maybe zero points or offsets.

All granularities are one rule: the values, in row-major order, fall into equal runs, and each run
has one scale. A tensor is one run, a channel or a sample is a run, a row is a run, and a group is
a run because K is contiguous. So the scale's shape only has to say how many runs there are: `()`
for the whole tensor, a leading part of the values' shape (channel, sample, row), or `(N, K/g)` for
groups of a weight seen as [N, K], and `(..., K/g)` for those of activations [..., K].

With offsets, which are floats, integers count from 0: a value is `(u - qmin) * s + m`. So formats
are held exactly whose smallest value of a group is stored beside its scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, WidthError
from fewbit.numerics.arrays import Float32Array, Int8Array, Int32Array, IntArray, integers
from fewbit.numerics.widths import Width


@dataclass(frozen=True, eq=False)
class Quantized:
    """Integers `values` that stand for `(values - zero_point) * scale + offset`, run by run.

    Where there are offsets, the zero point of all runs is the least integer of the width.
    """

    values: Int8Array
    scale: Float32Array
    zero_point: Int32Array | None
    width: Width
    offset: Float32Array | None = None

    def __post_init__(self) -> None:
        _check_dtypes(self)
        if not covers(self.scale.shape, self.values.shape):
            raise ShapeError(
                f"scales of shape {self.scale.shape} do not fit values of shape "
                f"{self.values.shape}",
                hint="a scale is per tensor (), per leading index, or per group (N, K/g)",
            )
        if self.zero_point is not None and self.zero_point.shape != self.scale.shape:
            raise ShapeError(
                f"zero points of shape {self.zero_point.shape} do not fit scales of shape "
                f"{self.scale.shape}"
            )
        if not self.width.holds(self.values):
            raise WidthError(f"some values do not fit {self.width} bits")
        _check_zero_point(self.zero_point, self.width)
        _check_offset(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def has_groups(self) -> bool:
        """Whether runs are parts of the last dimension."""
        return self.scale.ndim == self.values.ndim > 0

    def centered(self) -> IntArray:
        """Return the integers less their zero points: what is multiplied and accumulated."""
        if self.offset is not None:
            return self.values.astype(np.int32) - self.width.qmin
        return centered(self.values, self.zero_point)

    def take_rows(self, rows: slice | npt.NDArray[np.intp]) -> Quantized:
        """Return some rows, along the first dimension, with what they have of scales."""

        def take(each: Float32Array | Int32Array | None) -> Any:
            return each if each is None or each.ndim == 0 else each[rows]

        return Quantized(
            self.values[rows],
            take(self.scale),
            take(self.zero_point),
            self.width,
            take(self.offset),
        )

    def dequantize(self) -> Float32Array:
        """Return the float32 values `(values - zero_point) * scale + offset`."""
        runs = _runs(self.centered(), self.scale.size).astype(np.float32)
        runs *= self.scale.reshape(-1, 1)
        if self.offset is not None:
            runs += self.offset.reshape(-1, 1)
        return runs.reshape(self.shape)


def join_rows(values: Int8Array, parts: Sequence[Quantized]) -> Quantized:
    """Return the quantized tensor of these values, whose rows were quantized part by part."""

    def join(arrays: Sequence[Any]) -> Any:
        return None if arrays[0] is None else np.concatenate(arrays)

    return Quantized(
        values,
        join([part.scale for part in parts]),
        join([part.zero_point for part in parts]),
        parts[0].width,
        join([part.offset for part in parts]),
    )


def covers(scale: tuple[int, ...], values: tuple[int, ...]) -> bool:
    """Return whether a scale of this shape cuts values of that shape into runs."""
    if scale == values[: len(scale)]:
        return True
    if not scale or scale[-1] == 0 or scale[:-1] != values[: len(scale) - 1]:
        return False
    if len(scale) == len(values):
        return values[-1] % scale[-1] == 0
    return len(scale) == 2 and math.prod(values[1:]) % scale[1] == 0


def centered(values: IntArray, zero_point: npt.ArrayLike | None) -> IntArray:
    """Return `values` less the zero point of each run, without overflow."""
    if zero_point is None:
        return values
    zeros = integers(zero_point, "zero point")
    if not covers(zeros.shape, values.shape):
        raise ShapeError(
            f"zero points of shape {zeros.shape} do not fit values of shape {values.shape}"
        )
    wide = np.int32 if values.dtype.itemsize <= 2 else np.int64
    runs = _runs(values, zeros.size)
    return np.subtract(runs, zeros.reshape(-1, 1), dtype=wide).reshape(values.shape)


def _runs(values: IntArray, count: int) -> IntArray:
    return values.reshape(count, values.size // count if count else 0)


def _check_zero_point(zero_point: Int32Array | None, width: Width) -> None:
    if zero_point is None:
        return
    if width.is_binary or width.is_ternary:
        raise WidthError(
            f"{width} bits have no zero point", hint="zero points need a width of 2 to 8"
        )
    if not width.holds(zero_point):
        raise WidthError(f"zero points must fit {width} bits, {width.qmin} to {width.qmax}")


def check_offset_width(width: Width) -> None:
    if width.is_binary or width.is_ternary:
        raise WidthError(f"{width} bits have no offset", hint="offsets need a width of 2 to 8")


def _check_offset(tensor: Quantized) -> None:
    if tensor.offset is None:
        return
    check_offset_width(tensor.width)
    if tensor.zero_point is not None:
        raise WidthError("a tensor has zero points or offsets, not both")
    if tensor.offset.shape != tensor.scale.shape:
        raise ShapeError(
            f"offsets of shape {tensor.offset.shape} do not fit scales of shape "
            f"{tensor.scale.shape}"
        )


def _check_dtypes(tensor: Quantized) -> None:
    expected = (
        ("values", tensor.values, np.int8),
        ("scales", tensor.scale, np.float32),
        ("offsets", tensor.offset, np.float32),
    )
    for what, array, dtype in expected:
        if array is not None and array.dtype != dtype:
            raise WidthError(f"quantized {what} are {np.dtype(dtype)}, not {array.dtype}")
    if tensor.zero_point is not None and tensor.zero_point.dtype != np.int32:
        raise WidthError(f"zero points are int32, not {tensor.zero_point.dtype}")
