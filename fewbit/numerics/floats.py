"""Float functions between layers: the same bits wherever they are computed.

What follows a float function is rounded to integers, and one last bit can move such an integer.
So each function here is a sequence of float32 operations that rounds after every one (functions
such as exp are formulas of `approximations`), and targets do the same operations in the same order.
Two things are not such a sequence:

- A sum is accumulated in float64 and rounded once. Its order is free: another one changes a bit of
  the result in about one sum of 10⁸.
- A matmul of two activations is, for each element, a chain of fused multiply-adds in float32, in
  the order of the reduction dimension: that is how kernels compute it.

Floats of 16 bits are computed in float32; float64 stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fewbit.numerics.approximations import Number, evaluate
from fewbit.numerics.approximations.formulas import exp

Array = npt.NDArray[Any]
Axes = int | tuple[int, ...]

_HALF_OF_LAST = 1 << 28
"""What float32 cuts off of a float64, where that is half of the last bit that it keeps."""
_CUT_OFF = (1 << 29) - 1
_SMALLEST = 2.0**-126


def to_working_type(x: Array) -> Array:
    """Return the array in the type that it is computed in: float32, or float64 if it is that."""
    return x if x.dtype == np.float64 else x.astype(np.float32, copy=False)


def apply_formula(
    formula: Callable[..., Number], in_float64: Callable[..., Any], *inputs: Array
) -> Array:
    """Apply a formula of float32, or numpy's function where the inputs are float64."""
    if inputs[0].dtype == np.float64:
        return np.asarray(in_float64(*inputs))
    return evaluate(formula, *map(to_working_type, inputs))


def sum_over(x: Array, axes: Axes) -> Array:
    """Sum in float64, rounded once; summed dimensions stay, with size 1."""
    return x.sum(axis=axes, keepdims=True, dtype=np.float64).astype(x.dtype)


def mean_over(x: Array, axes: Axes) -> Array:
    """Average in float64, rounded once."""
    total = x.sum(axis=axes, keepdims=True, dtype=np.float64)
    return (total / (x.size // max(total.size, 1))).astype(x.dtype)


def mean_square_over(x: Array, axes: Axes) -> Array:
    """Average squares, which are exact in float64, rounded once."""
    wide = x.astype(np.float64)
    return mean_over(wide * wide, axes).astype(x.dtype)


def softmax(x: Array, axis: int) -> Array:
    """Compute exp(x - max x) / Σ exp(x - max x). A row of -inf alone gives NaN."""
    x = to_working_type(x)
    with np.errstate(invalid="ignore"):
        below = x - x.max(axis=axis, keepdims=True, initial=-np.inf)
        powers = apply_formula(exp, np.exp, below)
        return powers / sum_over(powers, axis)


def layer_norm(
    x: Array, axes: Axes, weight: Array, bias: Array | None = None, eps: float = 0.0
) -> Array:
    x = to_working_type(x)
    centered = x - mean_over(x, axes)
    y = centered / _deviation(mean_square_over(centered, axes), eps) * weight.astype(x.dtype)
    return y if bias is None else y + bias.astype(x.dtype)


def rms_norm(x: Array, axes: Axes, weight: Array | None = None, eps: float = 0.0) -> Array:
    x = to_working_type(x)
    y = x / _deviation(mean_square_over(x, axes), eps)
    return y if weight is None else y * weight.astype(x.dtype)


def batch_norm(
    x: Array, weight: Array, bias: Array, mean: Array, variance: Array, eps: float
) -> Array:
    """Normalize by given statistics, in float64, rounded once; parameters broadcast.

    Most batch norms become part of a layer: this is the result that they are compared with.
    """
    dtype = to_working_type(x).dtype
    x, weight, bias, mean, variance = (
        value.astype(np.float64) for value in (x, weight, bias, mean, variance)
    )
    return ((x - mean) * (weight / _deviation(variance, eps)) + bias).astype(dtype)


def _deviation(variance: Array, eps: float) -> Array:
    return np.sqrt(variance + variance.dtype.type(eps))


def multiply_matrices(a: Array, b: Array) -> Array:
    """Multiply [..., m, k] by [..., k, n], by chains of fused multiply-adds in float32."""
    a, b = to_working_type(a), to_working_type(b)
    if np.float64 in (a.dtype, b.dtype):
        return np.matmul(a, b)
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    total: Array = np.zeros((*lead, a.shape[-2], b.shape[-1]), np.float32)
    for k in range(a.shape[-1]):
        total = fused_multiply_add(a[..., :, k, None], b[..., None, k, :], total)
    return total


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """Return a·b + c of float32, rounded once.

    The product is exact in float64. Its sum with c is rounded there, and again to float32: that
    differs from one rounding only where the first ends half-way between two of float32.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        product, addend = a.astype(np.float64) * b, c.astype(np.float64)
        total = np.asarray(product + addend)
        rounded = np.asarray(total.astype(np.float32))
        cut_off = total.view(np.int64) & _CUT_OFF
        doubtful = (cut_off == _HALF_OF_LAST) | ((np.abs(total) < _SMALLEST) & (total != 0))
        if doubtful.any():
            terms = (np.broadcast_to(term, total.shape)[doubtful] for term in (product, addend))
            rounded[doubtful] = add_to_odd(*terms).astype(np.float32)
    return rounded


def add_to_odd(a: Array, b: Array) -> Array:
    """Add float64, with the last bit of a sum that is not exact set: a next rounding is right."""
    total = np.asarray(a + b)
    back = total - a
    error = (a - (total - back)) + (b - back)
    is_even = total.view(np.int64) & 1 == 0
    towards = np.where((error > 0) == (total > 0), 1, -1)
    adjust = np.isfinite(total) & (error != 0) & is_even
    return np.where(adjust, (total.view(np.int64) + towards).view(np.float64), total)
