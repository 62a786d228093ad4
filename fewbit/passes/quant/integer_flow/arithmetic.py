"""Loops over i32 tensors: other scales, sums, bounds. Nothing wraps: what is too large saturates.

A scale is changed by a factor for all, or one for each entry of a dimension. It is an f32, or with
a shift a fixed-point number; the latter is rounded half up, which is fit for values that have more
bits than will be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, i32, i64
from xdsl.ir import SSAValue

from fewbit.dialects import mico
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import (
    apply,
    elementwise,
    generic,
    loops,
    read,
    read_leading,
)
from fewbit.passes.linalg.building.tensors import (
    as_type,
    empty,
    expand_axis,
    pad,
    size_of,
    sizes_of,
)
from fewbit.passes.linalg.building.windows import Window, counts

LOWEST, HIGHEST = -(1 << 31), (1 << 31) - 1
HIGHEST_FLOAT = (1 << 31) - 128
"""The largest f32 that an i32 holds."""


@dataclass(frozen=True)
class Factor:
    """What integers are multiplied by: one number, or one for each entry of a dimension."""

    multiplier: SSAValue
    shift: SSAValue | None


def rescale(value: SSAValue, factor: Factor, axis: int) -> SSAValue:
    """Return round(value · factor), in i32."""
    sizes = sizes_of(value)
    index = loops(len(sizes))
    along = index[axis : axis + 1]
    inputs = [read(value, *index), read_leading(factor.multiplier, along)]
    if factor.shift is None:
        return elementwise(inputs, sizes, i32, _by_float)
    inputs.append(read_leading(factor.shift, along))
    return elementwise(inputs, sizes, i32, _by_fixed_point)


def _by_float(value: SSAValue, multiplier: SSAValue) -> SSAValue:
    product = s.round_even(s.mul(s.to_float(value), multiplier))
    return s.to_integer(_clamp(product, LOWEST, HIGHEST_FLOAT), i32)


def _by_fixed_point(value: SSAValue, multiplier: SSAValue, shift: SSAValue) -> SSAValue:
    product = s.mul(s.to_integer(value, i64), s.to_integer(multiplier, i64))
    wide = s.to_integer(shift, i64)
    one = s.constant(1, i64)
    half = arith.ShRSIOp(arith.ShLIOp(one, wide).result, one).result
    rounded = arith.ShRSIOp(s.add(product, half), wide).result
    return s.to_integer(_clamp(rounded, LOWEST, HIGHEST), i32)


def _clamp(value: SSAValue, low: int, high: int) -> SSAValue:
    return s.smaller(s.larger(value, s.constant(low, value.type)), s.constant(high, value.type))


def add_saturating(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Add two tensors of one shape, each clamped to half of the range."""

    def body(a: SSAValue, b: SSAValue) -> SSAValue:
        return s.add(*(_clamp(each, LOWEST // 2, HIGHEST // 2) for each in (a, b)))

    sizes = sizes_of(lhs)
    index = loops(len(sizes))
    return elementwise([read(lhs, *index), read(rhs, *index)], sizes, i32, body)


def clamp(value: SSAValue, low: int, high: int) -> SSAValue:
    return apply(value, i32, lambda x: _clamp(x, low, min(high, HIGHEST)))


def window_sums(op: mico.AvgPool2dOp, x: SSAValue) -> SSAValue:
    """Return the sum of each window; elements are clamped so that it cannot overflow."""
    kernel = ints(op.kernel_size)
    most = HIGHEST // (kernel[0] * kernel[1])
    type = TensorType(i32, mico.shape_of(op.result.type))

    def body(value: SSAValue, *more: SSAValue) -> SSAValue:
        return s.add(more[-1], _clamp(value, -most, most))

    if kernel == mico.shape_of(x.type)[2:]:
        # In this form the loops do not care for the layout.
        n, c, h, w = loops(4)
        total = generic([read(x, n, c, h, w)], [n, c], sizes_of(x)[:2], i32, body, start=0)
        return as_type(expand_axis(total, 1, [size_of(x, 1), 1, 1]), type)
    steps = zip(kernel, ints(op.stride), op.padding_pairs, strict=True)
    rows, columns = windows = [Window(size, by, *sides) for size, by, sides in steps]
    low, high = ([0, 0, *sides] for sides in zip(*op.padding_pairs, strict=True))
    n, c, oh, ow, kh, kw = loops(6)
    # Nothing but its shape matters: it gives the loops over the window their range.
    window = empty(kernel, i32)
    total = generic(
        [
            read(pad(x, low, high, 0), n, c, rows.index(oh, kh), columns.index(ow, kw)),
            read(window, kh, kw),
        ],
        [n, c, oh, ow],
        [*sizes_of(x)[:2], *counts(x, windows)],
        i32,
        body,
        start=0,
    )
    return as_type(total, type)
