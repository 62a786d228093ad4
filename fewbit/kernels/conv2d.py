"""Convolution as an implicit GEMM: rows of the left matrix are pointers into the image.

    void fewbit_conv2d_f32(ptr x, ptr w_packed, ptr bias, ptr add, ptr y, ptr sizes,
                           float lo, float hi, i64 thread, i64 threads)

An output pixel is a row of the matmul, a tap of the kernel is a part of its sum. A tap outside
the image is read from zeros. With few channels, a row of the kernel is taken as one tap: its
pixels are one run in the image, or in a copy where it crosses the edge.

x and y are channels-last (NHWC); `sizes` points to the numbers of `image.Sizes`. Groups are one
call each, on pointers to the group's channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import numpy as np

from fewbit.kernels.activation import with_activation
from fewbit.kernels.cuts import Arithmetic, S, T
from fewbit.kernels.emit import Function
from fewbit.kernels.image import Sizes, image_function
from fewbit.kernels.kernel import Floats, Kernel
from fewbit.kernels.pack import pack_panels
from fewbit.kernels.sweep import BLOCK_ROWS, part_of_sum, row_of, share, sweep
from fewbit.kernels.table import GROUP, PLACES, copy_edges, fill_table, locate, rows_before
from fewbit.numerics.approximations.activations import Activation

TABLE = 512
"""Pointers in the table of a block: rows times taps."""
MOST_TAPS = 32
ROOM = 2048
"""Floats for runs at the edges of the image."""
LONGEST_RUN = 64


@dataclass(frozen=True)
class Blocks(Generic[S]):
    """How a convolution is divided: into blocks of `rows`, and K into taps and depths."""

    by_runs: S
    """Whether a row of the kernel is one tap."""
    kw: S
    c: S
    taps: S
    depth_step: S
    tap_step: S
    rows: S

    @staticmethod
    def of(f: Arithmetic[T], s: Sizes[T]) -> Blocks[T]:
        tile_rows, deepest = f.isa.tile_rows(1), f.isa.block_depth
        run = s.kw * s.c
        dense = s.x_stride.equals(s.c) & s.dilation_w.equals(1)
        by_runs = dense & (s.kw > 1) & (run <= LONGEST_RUN)
        kw, c = f.select(by_runs, 1, s.kw), f.select(by_runs, run, s.c)
        taps = s.kh * kw
        depth_step = f.ceiling(c, f.ceiling(c, deepest))
        deepest_here = f.select(by_runs, min(ROOM // tile_rows, deepest), deepest)
        most = f.larger(f.smaller(deepest_here // c, MOST_TAPS), 1)
        tap_step = f.ceiling(taps, f.ceiling(taps, most))
        rows = f.smaller(f.integer(TABLE // tile_rows) // tap_step * tile_rows, BLOCK_ROWS)
        return Blocks(by_runs, kw, c, taps, depth_step, tap_step, rows)


@dataclass(frozen=True)
class Conv2d(Kernel):
    """A convolution of any kernel, stride, dilation and padding."""

    activation: Activation | None = None

    @property
    def symbol(self) -> str:
        return with_activation("fewbit_conv2d_f32", self.activation)

    def pack(self, weight: Floats) -> Floats:
        """Return the weight [oc, c, kh, kw] of one group, in panels."""
        oc = weight.shape[0]
        return pack_panels(np.reshape(weight.transpose(2, 3, 1, 0), (-1, oc)), self.isa)

    def function(self) -> Function:
        f = image_function(self.isa, self.symbol)
        x, w, bias, add, y, sizes, lo, hi, thread, threads = f.parameters
        s = Sizes.load(f, sizes)
        m = s.batch * s.oh * s.ow
        k = s.kh * s.kw * s.c
        row_first, row_last, first, last = share(f, m, s.oc, k, thread, threads)
        places = f.array("i64", 3 * PLACES)
        table = f.array("ptr", TABLE + GROUP)
        room = f.array("float", ROOM + self.isa.lanes)

        cut = Blocks.of(f, s)
        by_runs, kw, c, taps = cut.by_runs, cut.kw, cut.c, cut.taps
        tap_step, depth_step = cut.tap_step, cut.depth_step
        copies = f.integer(ROOM) // (tap_step * c)
        with f.loop(row_first, row_last) as over_rows:
            row = over_rows.index
            rows = f.smaller(row_last - row, cut.rows)
            f.call(locate(self.isa), x, sizes, row, rows, places)
            rows = rows_before(f, s, places, rows, copies, by_runs)
            over_rows.step = rows
            y_row, add_row = f.at(y, row * s.y_stride), row_of(f, add, row * s.y_stride)
            with f.loop(0, taps, tap_step) as over_taps, f.loop(0, c, depth_step) as over_c:
                tap, channel = over_taps.index, over_c.index
                tap_count = f.smaller(taps - tap, tap_step)
                depth = f.smaller(c - channel, depth_step)
                fill = (sizes, places, rows, tap, tap_count)
                f.call(fill_table(self.isa), *fill, kw, channel, table)
                with f.when(by_runs):
                    f.call(copy_edges(self.isa), *fill, room, table)
                ends = (taps <= tap + tap_count) & (c <= channel + depth)
                f.call(
                    sweep(self.isa, self.activation),
                    table,
                    rows,
                    tap_count,
                    depth,
                    w,
                    tap * c + channel,
                    taps * c,
                    *part_of_sum(f, (tap + channel).equals(0), bias, add_row, y_row),
                    y_row,
                    s.y_stride,
                    s.oc,
                    first,
                    last,
                    f.select(ends, 1, 0),
                    lo,
                    hi,
                )
        return f
