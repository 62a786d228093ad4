"""How a convolution walks over its input, independent of what it multiplies.

A convolution is a matmul over columns (im2col): for every output position, the inputs under the
kernel. `Window` holds the geometry, `convolve` lays the columns out a few samples at a time, so
that memory stays bounded, and leaves the matmul to its caller: integers, floats or groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fewbit.errors import ShapeError

Pair = tuple[int, int]
Sides = tuple[Pair, Pair]
"""Padding by side: ((top, bottom), (left, right))."""

NumberArray = npt.NDArray[Any]
_BLOCK = 1 << 23


@dataclass(frozen=True)
class Window:
    """Stride, padding, dilation and groups of a two-dimensional convolution."""

    stride: Pair = (1, 1)
    padding: Sides = ((0, 0), (0, 0))
    dilation: Pair = (1, 1)
    groups: int = 1

    def __post_init__(self) -> None:
        if min(*self.stride, *self.dilation, self.groups) < 1:
            raise ShapeError(
                f"stride {self.stride}, dilation {self.dilation} and groups {self.groups} must "
                "be at least 1"
            )
        if min(*self.padding[0], *self.padding[1]) < 0:
            raise ShapeError(f"padding {self.padding} must not be negative")

    def output(self, x: tuple[int, ...], w: tuple[int, ...]) -> tuple[int, int, int, int]:
        """Return [N, O, OH, OW] for an input [N, C, H, W] and a weight [O, C/groups, kh, kw]."""
        if len(x) != 4 or len(w) != 4:
            raise ShapeError(
                f"a convolution takes [N, C, H, W] and [O, C/groups, kh, kw], not {x} and {w}"
            )
        if x[1] != w[1] * self.groups or w[0] % self.groups != 0:
            raise ShapeError(
                f"input channels {x[1]} and weight {w} do not go together in {self.groups} groups",
                hint="the weight is [O, C/groups, kh, kw], and groups divide both C and O",
            )
        height, width = (
            (size + before + after - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, (before, after), stride, dilation in zip(
                x[2:], w[2:], self.padding, self.stride, self.dilation, strict=True
            )
        )
        if min(height, width, *w[2:]) < 1:
            raise ShapeError(f"a kernel of {w[2:]} does not fit an input of {x[2:]} with {self}")
        return x[0], w[0], height, width

    def kernel(self, w: NumberArray) -> NumberArray:
        """Reshape a weight [O, C/groups, kh, kw] to matrices [groups, O/groups, C/groups·kh·kw]."""
        return w.reshape(self.groups, w.shape[0] // self.groups, math.prod(w.shape[1:]))

    def columns(self, x: NumberArray, kernel: Pair, output: Pair) -> NumberArray:
        """Return the inputs under the kernel, [N, groups, C/groups·kh·kw, OH·OW]; padding is 0."""
        padded = np.pad(x, ((0, 0), (0, 0), *self.padding))
        (kh, kw), (dh, dw), (sh, sw) = kernel, self.dilation, self.stride
        spans = (dh * (kh - 1) + 1, dw * (kw - 1) + 1)
        windows = sliding_window_view(padded, spans, axis=(2, 3))
        windows = windows[:, :, ::sh, ::sw, ::dh, ::dw].transpose(0, 1, 4, 5, 2, 3)
        k = x.shape[1] // self.groups * kh * kw
        return windows.reshape(x.shape[0], self.groups, k, math.prod(output))


ColumnMatmul = Callable[[NumberArray, slice], NumberArray]
"""From columns [n, groups, K, P] of the samples in the slice to results [n, O, P, ...]."""


def convolve(
    x: NumberArray, kernel: tuple[int, ...], window: Window, multiply: ColumnMatmul
) -> NumberArray:
    """Apply `multiply` to the columns of all samples: [N, O, OH, OW, ...]."""
    samples, channels, height, width = window.output(x.shape, kernel)
    per_sample = max(1, x.shape[1] * kernel[2] * kernel[3] * height * width)
    step = max(1, _BLOCK // per_sample)
    results: list[NumberArray] = []
    for start in range(0, max(samples, 1), step):
        block = slice(start, start + step)
        columns = window.columns(x[block], (kernel[2], kernel[3]), (height, width))
        results.append(multiply(columns, block))
    result = np.concatenate(results)
    return result.reshape(samples, channels, height, width, *result.shape[3:])
