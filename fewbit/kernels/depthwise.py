"""Depthwise convolution: each channel is its own image, so vectors run along channels.

    void fewbit_depthwise_f32(the arguments of fewbit_conv2d_f32)

A few neighbouring output pixels are taken together and share each vector of weights. Taps outside
the image are left out: a line has one range of kernel rows, and pixels at its ends are taken one
by one, each with its own range of kernel columns.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from fewbit.kernels.activation import activate, with_activation
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes, image_function
from fewbit.kernels.kernel import Floats, Kernel
from fewbit.kernels.pack import packed_size
from fewbit.kernels.sweep import or_zeros, row_of
from fewbit.numerics.approximations.activations import Activation
from fewbit.toolchain.isa import Isa

MOST_PIXELS = 8


@dataclass(frozen=True)
class Depthwise(Kernel):
    """One output channel for each input channel; any kernel, stride, dilation and padding."""

    activation: Activation | None = None

    @property
    def symbol(self) -> str:
        return with_activation("fewbit_depthwise_f32", self.activation)

    def pack(self, weight: Floats) -> Floats:
        """Return the weight [c, 1, kh, kw] channels-last, padded to whole vectors."""
        c, _, kh, kw = weight.shape
        packed = np.zeros((kh * kw, packed_size(1, c, self.isa)), np.float32)
        packed[:, :c] = np.reshape(weight, (c, kh * kw)).T
        return packed.ravel()

    def function(self) -> Function:
        f = image_function(self.isa, self.symbol)
        x, w, bias, add, y, sizes, lo, hi, thread, threads = f.parameters
        s = Sizes.load(f, sizes)
        w_step = f.ceiling(s.c, self.isa.lanes) * self.isa.lanes
        activation = self.activation
        unbounded = f.number(float("-inf")), f.number(float("inf"))
        with neighbours(f, s, thread, threads) as p:
            to = p.pixel * s.y_stride
            f.switch(
                p.count,
                [(n, depthwise_tile(self.isa, n)) for n in range(1, MOST_PIXELS + 1)],
                f.at(x, p.x),
                s.stride_w * s.x_stride,
                s.dilation_h * s.w * s.x_stride,
                s.dilation_w * s.x_stride,
                f.at(w, p.tap * w_step),
                s.kw * w_step,
                w_step,
                p.rows,
                p.columns,
                bias,
                row_of(f, add, to),
                f.at(y, to),
                s.y_stride,
                s.c,
                *((lo, hi) if activation is None else unbounded),
            )
            if activation is not None:
                here = f.at(y, to)
                f.call(activate(self.isa, activation), here, s.y_stride, p.count, s.c, lo, hi)
        return f


@dataclass(frozen=True)
class Neighbours:
    """Output pixels side by side that see the same rows and columns of the kernel."""

    pixel: Value
    count: Value
    top: Value
    left: Value
    corner: Value
    """The place in the image, or outside, of the first tap of the first of them."""
    x: Value
    """The place of the first tap that it sees."""
    tap: Value
    rows: Value
    columns: Value


@contextmanager
def neighbours(
    f: Function,
    s: Sizes,
    thread: Value,
    threads: Value,
    most: Value | int = MOST_PIXELS,
    together: Value | None = None,
    mixed: Value | None = None,
) -> Generator[Neighbours]:
    """Yield the thread's output pixels, at most so many at a time, of one run of `together` pixels.

    If they may be `mixed`, those at an edge may see fewer columns.
    """
    pixels = s.batch * s.oh * s.ow
    first, last = pixels * thread // threads, pixels * (thread + 1) // threads
    inner_first = f.smaller(f.ceiling(s.pad_left, s.stride_w), s.ow)
    room = s.w + s.pad_left - (s.kw - 1) * s.dilation_w
    fitting = f.select(room < 1, 0, (room - 1) // s.stride_w + 1)
    inner_last = f.larger(f.smaller(fitting, s.ow), inner_first)
    with f.loop(first, last) as lines:
        line, start = lines.index // s.ow, lines.index % s.ow
        stop = f.smaller(s.ow, start + (last - lines.index))
        lines.step = stop - start
        image, top = line // s.oh, line % s.oh * s.stride_h - s.pad_top
        ky, rows = _seen(f, top, s.h, s.kh, s.dilation_h)
        line_x = (image * s.h + top) * s.w
        with f.loop(start, stop) as loop:
            ox = loop.index
            left = ox * s.stride_w - s.pad_left
            kx, columns = _seen(f, left, s.w, s.kw, s.dilation_w)
            inner = (inner_first <= ox) & (ox < inner_last)
            count = f.select(inner, f.smaller(inner_last, stop) - ox, 1)
            if mixed is not None:
                count = f.select(mixed, stop - ox, count)
            count = f.ceiling(count, f.ceiling(count, most))
            pixel = line * s.ow + ox
            if together is not None:
                count = f.smaller(count, together - pixel % together)
            loop.step = count
            corner = (line_x + left) * s.x_stride
            at = corner + (ky * s.dilation_h * s.w + kx * s.dilation_w) * s.x_stride
            yield Neighbours(pixel, count, top, left, corner, at, ky * s.kw + kx, rows, columns)


def _seen(f: Function, start: Value, size: Value, count: Value, step: Value) -> tuple[Value, Value]:
    """Return the first of `count` taps that is inside the image, and how many are."""
    first = f.select(start < 0, f.ceiling(f.integer(0) - start, step), 0)
    room = size - start
    last = f.smaller(count, f.select(room < 1, 0, f.ceiling(room, step)))
    return first, f.larger(last - first, 0)


@cache
def depthwise_tile(isa: Isa, pixels: int) -> Function:
    """Return the function for all channels of neighbouring pixels, and taps inside the image."""
    f = Function(
        isa,
        f"fewbit_depthwise_tile_f32_{pixels}",
        "ptr x, i64 x_step, i64 x_row_step, i64 x_column_step, ptr w, i64 w_row_step, "
        "i64 w_column_step, i64 rows, i64 columns, ptr bias, ptr add, ptr y, i64 y_step, "
        "i64 c, float lo, float hi",
        apart=True,
    )
    (
        x,
        x_step,
        x_row,
        x_column,
        w,
        w_row,
        w_column,
        rows,
        columns,
        bias,
        add,
        y,
        y_step,
        c,
        lo,
        hi,
    ) = f.parameters
    lanes = isa.lanes
    low, high = f.broadcast(lo), f.broadcast(hi)
    bias_start, bias_step = or_zeros(f, bias)
    add_start, add_step = or_zeros(f, add)

    def channels(channel: Value, vectors: int, mask: Value | None) -> None:
        cells = [(p, v) for p in range(pixels) for v in range(vectors)]
        biases = [
            f.load_part(f.at(bias_start, (channel + v * lanes) * bias_step), mask)
            for v in range(vectors)
        ]
        starts = [
            biases[v]
            + f.load_part(f.at(add_start, (y_step * p + channel + v * lanes) * add_step), mask)
            for p, v in cells
        ]
        x_here, w_here = f.at(x, channel), f.at(w, channel)
        with f.loop(0, rows, carried=starts) as over_rows:
            x_line, w_line = (
                f.at(x_here, over_rows.index * x_row),
                f.at(w_here, over_rows.index * w_row),
            )
            with f.loop(0, columns, carried=over_rows.carried) as over_columns:
                x_tap = f.at(x_line, over_columns.index * x_column)
                w_tap = f.at(w_line, over_columns.index * w_column)
                weights = [f.load(f.vector, w_tap, v) for v in range(vectors)]
                over_columns.carry(
                    *(
                        f.multiply_add(
                            f.load_part(f.at(f.at(x_tap, x_step * p), v * lanes), mask),
                            weights[v],
                            total,
                        )
                        for (p, v), total in zip(cells, over_columns.carried, strict=True)
                    )
                )
            over_rows.carry(*over_columns.results)
        for (p, v), total in zip(cells, over_rows.results, strict=True):
            to = f.at(y, y_step * p + channel + v * lanes)
            f.store_part(f.clamp(total, low, high), to, mask)

    vectors = max(1, isa.registers // 2 // pixels)
    width = vectors * lanes
    whole = c // width * width
    with f.loop(0, whole, width) as loop:
        channels(loop.index, vectors, None)
    with f.loop(whole, c, lanes) as loop:
        channels(loop.index, 1, f.first_lanes(c - loop.index))
    return f
