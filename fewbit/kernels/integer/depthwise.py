"""Depthwise convolution of bytes: vectors run along channels, as in the one of floats.

    void fewbit_depthwise_i8_*(the arguments of fewbit_conv2d_i8_*)

Neighbouring output pixels share each vector of weights, and the scale of their image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from fewbit.kernels.depthwise import MOST_PIXELS, neighbours
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.columns import (
    AT_ONCE,
    columns,
    columns_fit,
    has_columns,
    multiplies_columns,
    pack_columns,
)
from fewbit.kernels.integer.conv2d import PARAMETERS
from fewbit.kernels.integer.dot import multiply_lanes, widened
from fewbit.kernels.integer.output import SCALED, Columns, Output, moved, plain, pointers
from fewbit.kernels.isa import Isa
from fewbit.kernels.kernel import Bytes, Kernel
from fewbit.kernels.pack import packed_size
from fewbit.kernels.steps import Rounding
from fewbit.kernels.sweep import row_of


@dataclass(frozen=True)
class IntegerDepthwise(Kernel):
    """One output channel for each input channel; any kernel, stride, dilation and padding."""

    output: Output = "f32"

    @property
    def symbol(self) -> str:
        return f"fewbit_depthwise_i8_{self.output}"

    def pack(self, weight: Bytes) -> Bytes:
        """The weight [c, 1, kh, kw]: channels innermost, filled up to whole vectors."""
        c, _, kh, kw = weight.shape
        packed = np.zeros((kh * kw, packed_size(1, c, self.isa)), np.int8)
        packed[:, :c] = weight.reshape(c, kh * kw).T
        more = [pack_columns(weight)] if has_columns(kh, kw, self.isa) else []
        return np.concatenate([packed.ravel(), *more])

    def unpack(self, packed: Bytes, c: int, kh: int, kw: int) -> Bytes:
        size = packed_size(kh * kw, c, self.isa)
        return packed[:size].reshape(kh * kw, -1)[:, :c].T.reshape(c, 1, kh, kw)

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS.format(pointers(self.output)), public=True)
        x, w, x_scale, together, w_scale, bias, add, *rest = f.parameters
        *outputs, sizes, lo, hi, thread, threads = rest
        s = Sizes.load(f, sizes)
        w_step = f.ceiling(s.c, self.isa.lanes) * self.isa.lanes
        scaled = self.output in SCALED
        fast = columns_fit(f, s)
        most = f.select(fast, AT_ONCE, MOST_PIXELS)
        spread = together if scaled else None
        with neighbours(f, s, thread, threads, most, spread, fast) as p:
            to = p.pixel * s.y_stride
            ends = (
                f.at(x_scale, p.pixel // together) if scaled else x_scale,
                w_scale,
                bias,
                row_of(f, add, to),
                *moved(f, self.output, outputs, to),
                s.y_stride,
                s.c,
                lo,
                hi,
            )
            f.switch(
                f.select(fast, 0, p.count),
                [(n, depthwise_tile(self.isa, self.output, n)) for n in range(1, MOST_PIXELS + 1)],
                f.at(x, p.x, "i8"),
                s.stride_w * s.x_stride,
                s.dilation_h * s.w * s.x_stride,
                s.dilation_w * s.x_stride,
                f.at(w, p.tap * w_step, "i8"),
                s.kw * w_step,
                w_step,
                p.rows,
                p.columns,
                *ends,
            )
            if multiplies_columns(self.isa):
                corner, packed = f.at(x, p.corner, "i8"), f.at(w, s.kh * s.kw * w_step, "i8")
                with f.when(fast):
                    f.call(
                        columns(self.isa, self.output),
                        *(sizes, corner, p.top, p.left, packed, p.count, *ends),
                    )
        return f


@cache
def depthwise_tile(isa: Isa, output: Output, pixels: int) -> Function:
    """All channels of neighbouring pixels, for kernel rows and columns that are in the image."""
    f = Function(
        isa,
        f"fewbit_depthwise_tile_i8_{output}_{pixels}",
        "ptr x, i64 x_step, i64 x_row_step, i64 x_column_step, ptr w, i64 w_row_step, "
        "i64 w_column_step, i64 rows, i64 across, ptr x_scale, ptr w_scale, ptr bias, ptr add, "
        f"{pointers(output)}, i64 y_step, i64 c, float lo, float hi",
    )
    x, x_step, x_row, x_column, w, w_row, w_column, rows, across, *rest = f.parameters
    x_scale, w_scale, bias, add, *to, y_step, c, lo, hi = rest
    lanes = isa.lanes
    low, high = f.broadcast(lo), f.broadcast(hi)
    scale = f.broadcast(f.load("float", x_scale)) if output in SCALED else None
    absent = add.is_null()
    nothing = f.broadcast(f.number(-0.0))
    rounding = Rounding.load(f, to[2]) if plain(output) == "steps" else None

    def store(common: Columns, total: Value, place: Value, mask: Value | None) -> None:
        if scale is None:
            common.store_integers(f, output, total, to, place, mask)
            return
        source = f.select(absent, f.zeros(), f.at(add, place))
        more = f.select(absent, nothing, f.load_part(source, mask))
        value = common.added(output, common.scaled(f, total, scale), more)
        if rounding is None:
            f.store_part(common.bounded(f, value), f.at(to[0], place), mask)
            return
        f.store_part(rounding.bytes_of(f, value), f.at(to[1], place, "i8"), mask)
        with f.when(to[0].is_null().equals(0)):
            f.store_part(common.bounded(f, value), f.at(to[0], place), mask)

    def channels(channel: Value, vectors: int, mask: Value | None) -> None:
        cells = [(p, v) for p in range(pixels) for v in range(vectors)]
        starts = [f.zero(f"<{lanes} x i32>")] * len(cells)
        x_here, w_here = f.at(x, channel, "i8"), f.at(w, channel, "i8")
        with f.loop(0, rows, carried=starts) as over_rows:
            x_line = f.at(x_here, over_rows.index * x_row, "i8")
            w_line = f.at(w_here, over_rows.index * w_row, "i8")
            with f.loop(0, across, carried=over_rows.carried) as over_columns:
                x_tap = f.at(x_line, over_columns.index * x_column, "i8")
                w_tap = f.at(w_line, over_columns.index * w_column, "i8")
                weights = [widened(f, f.load(f"<{lanes} x i8>", w_tap, v)) for v in range(vectors)]
                done: list[Value] = []
                for (p, v), total in zip(cells, over_columns.carried, strict=True):
                    place = f.at(f.at(x_tap, x_step * p, "i8"), v * lanes, "i8")
                    seen = f.convert("sext", f.load_part(place, mask, "i8"), "i32")
                    done.append(multiply_lanes(f, seen, weights[v], total))
                over_columns.carry(*done)
            over_rows.carry(*over_columns.results)
        for v in range(vectors):
            at = channel + v * lanes
            common = Columns.load(f, output, w_scale, bias, at, mask, low, high)
            for p in range(pixels):
                store(common, over_rows.results[p * vectors + v], y_step * p + at, mask)

    vectors = max(1, isa.registers // 2 // pixels)
    width = vectors * lanes
    whole = c // width * width
    with f.loop(0, whole, width) as loop:
        channels(loop.index, vectors, None)
    with f.loop(whole, c, lanes) as loop:
        channels(loop.index, 1, f.first_lanes(c - loop.index))
    return f
