"""Pooling: windows are views of the padded input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from fewbit.dialects.kernel import Pool2dOp
from fewbit.dialects.mico import AvgPool2dOp, MaxPool2dOp, element_width
from fewbit.dialects.mico.pooling import PoolOp
from fewbit.dialects.mico.shapes import windows
from fewbit.dialects.mico.syntax import ints
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.mico.operands import as_type
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import Value
from fewbit.numerics import Width


def pooling_windows(
    op: PoolOp | Pool2dOp, x: Value, dilation: Sequence[int], padding: float, beyond: float
) -> Value:
    """Return the windows, [N, C, OH, OW, kh, kw].

    `padding` fills the padding, `beyond` what ceil_mode adds.
    """
    kernel, stride = ints(op.kernel_size), ints(op.stride)
    ceil = bool(op.ceil_mode.value.data)
    count = windows(x.shape[2:], kernel, stride, ints(op.padding), dilation, ceil=ceil)
    padded = _pad(x, op.padding_pairs, padding)
    missing = [
        (0, max(0, (n - 1) * s + d * (k - 1) + 1 - extent))
        for n, s, d, k, extent in zip(
            count, stride, dilation, kernel, padded.shape[2:], strict=True
        )
    ]
    padded = _pad(padded, missing, beyond)
    n, c, h, w = padded.strides
    return as_strided(
        padded,
        (*x.shape[:2], *count, *kernel),
        (n, c, h * stride[0], w * stride[1], h * dilation[0], w * dilation[1]),
        writeable=False,
    )


def _pad(x: Value, sides: Sequence[tuple[int, int]], fill: float) -> Value:
    """Extend the last two dimensions of `x` on both sides."""
    shape = [
        extent + before + after for extent, (before, after) in zip(x.shape[2:], sides, strict=True)
    ]
    result: Value = np.full((*x.shape[:2], *shape), fill, x.dtype)
    (top, _), (left, _) = sides
    result[:, :, top : top + x.shape[2], left : left + x.shape[3]] = x
    return result


def lowest_value(x: Value, width: Width | None) -> float:
    if width is not None:
        return width.qmin
    return int(np.iinfo(x.dtype.type).min) if x.dtype.kind in "iu" else -np.inf


@register(MaxPool2dOp)
def max_pool(frame: Frame, op: MaxPool2dOp, operands: Sequence[Value]) -> Sequence[Value]:
    lowest = lowest_value(operands[0], element_width(op.input.type))
    views = pooling_windows(op, operands[0], ints(op.dilation), lowest, lowest)
    return (views.max(axis=(4, 5)),)


def average_windows(op: AvgPool2dOp | Pool2dOp, x: Value) -> Value:
    """Average each window, in float64, as everything is until it is rounded once."""
    x = x.astype(np.float64)
    total = pooling_windows(op, x, (1, 1), 0, 0).sum(axis=(4, 5))
    counted = float(op.count_include_pad.value.data != 0)
    count = pooling_windows(op, np.ones_like(x), (1, 1), counted, 0).sum(axis=(4, 5))
    return total / count


@register(AvgPool2dOp)
def avg_pool(frame: Frame, op: AvgPool2dOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (as_type(average_windows(op, operands[0]), op.result.type),)
