"""The integer core: exact matmuls and convolutions in int32 accumulators.

Dot products of integers are computed by floating-point matrix multiplication, which is exact as
long as no partial sum can leave the range in which every integer is a float: 2^24 for float32,
2^53 for float64. The bound K · max|x| · max|w| is taken from the operands at hand, and chooses
between the two; it makes the references as fast as BLAS and still exact in any order of summation.
A sum that does not fit int32 is an error, never a wrapped number. Zero points are subtracted
first, so padding, which stands for the value zero, contributes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError
from fewbit.numerics.arrays import Int32Array, IntArray, integers
from fewbit.numerics.quantized import centered
from fewbit.numerics.widths import Width, WidthLike
from fewbit.numerics.window import NumberArray, Pair, Sides, Window, convolve

_INT32 = 1 << 31
_FLOAT32_EXACT = 1 << 24
_FLOAT64_EXACT = 1 << 53


def check_accumulator(
    k: int,
    x_width: WidthLike,
    w_width: WidthLike,
    asymmetric: bool | Literal["x", "w"] = False,
) -> None:
    """Refuse a reduction of k products that could leave int32.

    A symmetric operand is at most its width's magnitude, 2^(b-1); one with a zero point (both, or
    only "x" or "w") is at most 2^b - 1.
    """
    if k < 1:
        raise ShapeError(f"a reduction over {k} elements is empty")
    x_width, w_width = Width.of(x_width), Width.of(w_width)
    x_bound = _bound(x_width, asymmetric in (True, "x"))
    w_bound = _bound(w_width, asymmetric in (True, "w"))
    if k * x_bound * w_bound >= _INT32:
        most = (_INT32 - 1) // (x_bound * w_bound)
        raise ShapeError(
            f"{k} products of {x_width}-bit by {w_width}-bit integers can overflow int32",
            hint=f"at these widths K may be at most {most}; use fewer bits or split the layer",
        )


def linear(
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    x_zero_point: npt.ArrayLike | None = None,
    w_zero_point: npt.ArrayLike | None = None,
) -> Int32Array:
    """Return Σ_k (x[..., k] - zx)(w[n, k] - zw): int32 [..., N] from [..., K] and [N, K]."""
    xs, ws = linear_operands(x, w, x_zero_point, w_zero_point)
    return matmul(xs, ws.T)


def linear_grouped(
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    group: int,
    x_zero_point: npt.ArrayLike | None = None,
    w_zero_point: npt.ArrayLike | None = None,
) -> Int32Array:
    """Return the partial sums of each group of K: int32 [..., N, K/group]."""
    xs, ws = linear_operands(x, w, x_zero_point, w_zero_point)
    return np.stack(
        [matmul(xs[..., part], ws[:, part].T) for part in parts(ws.shape[1], group)], axis=-1
    )


def conv2d(
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    stride: Pair = (1, 1),
    padding: Sides = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
    groups: int = 1,
    x_zero_point: npt.ArrayLike | None = None,
    w_zero_point: npt.ArrayLike | None = None,
) -> Int32Array:
    """Convolve integers: int32 [N, O, OH, OW] from [N, C, H, W] and [O, C/groups, kh, kw]."""
    k = math.prod(np.shape(w)[1:])
    sums = conv2d_grouped(x, w, k, stride, padding, dilation, groups, x_zero_point, w_zero_point)
    return sums[..., 0]


def conv2d_grouped(
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    group: int,
    stride: Pair = (1, 1),
    padding: Sides = ((0, 0), (0, 0)),
    dilation: Pair = (1, 1),
    groups: int = 1,
    x_zero_point: npt.ArrayLike | None = None,
    w_zero_point: npt.ArrayLike | None = None,
) -> Int32Array:
    """Return the partial sums of each group of C/groups·kh·kw: int32 [N, O, OH, OW, K/group]."""
    window = Window(stride, padding, dilation, groups)
    xs = centered(integers(x, "input"), x_zero_point)
    ws = centered(integers(w, "weight"), w_zero_point)

    def multiply(columns: NumberArray, samples: slice) -> NumberArray:
        return np.stack(list(grouped_matmul(window.kernel(ws), columns, group)), axis=-1)

    return convolve(xs, ws.shape, window, multiply)


def conv1d(
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    stride: int = 1,
    padding: Pair = (0, 0),
    dilation: int = 1,
    groups: int = 1,
    x_zero_point: npt.ArrayLike | None = None,
    w_zero_point: npt.ArrayLike | None = None,
) -> Int32Array:
    """Convolve integers: int32 [N, O, OL] from [N, C, L] and [O, C/groups, k]."""
    xs, ws = (integers(operand, "operand") for operand in (x, w))
    if xs.ndim != 3 or ws.ndim != 3:
        raise ShapeError(
            f"a convolution takes [N, C, L] and [O, C/groups, k], not {xs.shape} and {ws.shape}"
        )
    return conv2d(
        xs[:, :, None, :],
        ws[:, :, None, :],
        (1, stride),
        ((0, 0), padding),
        (1, dilation),
        groups,
        x_zero_point,
        w_zero_point,
    )[:, :, 0, :]


def matmul(a: IntArray, b: IntArray) -> Int32Array:
    """Return a @ b of integer matrices (or stacks of them), exactly, as int32."""
    k = a.shape[-1]
    bound = k * _magnitude(a) * _magnitude(b)
    if bound >= _FLOAT64_EXACT:
        raise _overflow(k)
    real = np.float32 if bound <= _FLOAT32_EXACT else np.float64
    sums = np.matmul(a.astype(real), b.astype(real))
    if bound >= _INT32 and (sums.max() >= _INT32 or sums.min() < -_INT32):
        raise _overflow(k)
    return sums.astype(np.int32)


def linear_operands(
    x: npt.ArrayLike,
    w: npt.ArrayLike,
    x_zero_point: npt.ArrayLike | None,
    w_zero_point: npt.ArrayLike | None,
) -> tuple[IntArray, IntArray]:
    xs, ws = integers(x, "input"), integers(w, "weight")
    if ws.ndim != 2 or xs.ndim < 1 or xs.shape[-1] != ws.shape[1]:
        raise ShapeError(
            f"input {xs.shape} and weight {ws.shape} do not go together",
            hint="they are [..., K] and [N, K]",
        )
    return centered(xs, x_zero_point), centered(ws, w_zero_point)


def parts(k: int, group: int) -> Iterator[slice]:
    """Return the groups of K, in order."""
    if group < 1 or k % group != 0:
        raise ShapeError(f"groups of {group} do not divide the reduction dimension K = {k}")
    return (slice(start, start + group) for start in range(0, k, group))


def channel_matmul(kernel: IntArray, columns: IntArray) -> Int32Array:
    """Multiply [groups, O/groups, K] by columns [n, groups, K, P]: int32 [n, O, P]."""
    sums = matmul(kernel, columns)
    samples, groups, channels, positions = sums.shape
    return sums.reshape(samples, groups * channels, positions)


def grouped_matmul(kernel: IntArray, columns: IntArray, group: int) -> Iterator[Int32Array]:
    """Yield `channel_matmul` of each group of K, in order."""
    for part in parts(kernel.shape[-1], group):
        yield channel_matmul(kernel[..., part], columns[:, :, part, :])


def _bound(width: Width, asymmetric: bool) -> int:
    return (1 << width.bits) - 1 if asymmetric else width.magnitude


def _magnitude(x: IntArray) -> int:
    return max(int(x.max()), -int(x.min())) if x.size else 0


def _overflow(k: int) -> ShapeError:
    return ShapeError(
        f"a sum of {k} products does not fit int32", hint="use fewer bits or split the layer"
    )
