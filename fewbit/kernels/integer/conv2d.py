"""Convolution of bytes: rows are pointers into the image, or into a strip where channels are few.

    void fewbit_conv2d_i8_*(ptr x, ptr w_packed, ptr x_scale, i64 rows_per_scale, ptr w_scale,
                            ptr bias, ptr add, ptr y, ptr sizes, float lo, float hi,
                            i64 thread, i64 threads)

As the convolution of floats, `sizes` and groups included. `output.py` says what y is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Generic

import numpy as np

from fewbit.kernels.cuts import Arithmetic, S, T
from fewbit.kernels.emit import MOST_DEPTH, Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.output import Output, advance, pointers
from fewbit.kernels.integer.pack import column_offsets, pack_taps, unpack_taps, widen
from fewbit.kernels.integer.strip import (
    ROOM,
    SLACK,
    Strip,
    are_taken,
    copy_strip,
    point_into_strip,
    takes_strips,
)
from fewbit.kernels.integer.sweep import Rows, sweep_of
from fewbit.kernels.integer.tile import TALLEST
from fewbit.kernels.kernel import Bytes, Kernel
from fewbit.kernels.sweep import BLOCK_ROWS, Share, row_of, share
from fewbit.kernels.table import GROUP, PLACES, fill_table, locate

TABLE = 1024
"""Pointers in the table of a block: rows times taps."""
PARAMETERS = (
    "ptr x, ptr w_packed, ptr x_scale, i64 rows_per_scale, ptr w_scale, ptr bias, ptr add, {}, "
    "ptr sizes, float lo, float hi, i64 thread, i64 threads"
)


@dataclass(frozen=True)
class Blocks(Generic[S]):
    """How a convolution by taps is divided: into blocks of `rows`, and K into taps and depths."""

    taps: S
    runs: S
    """Runs of steps that a tap has."""
    depth_step: S
    tap_step: S
    whole: S
    """Whether sums are taken in one go; else there is one panel at a time."""
    rows: S

    @staticmethod
    def of(f: Arithmetic[T], s: Sizes[T], unit: int, first: T, last: T) -> Blocks[T]:
        """Return the blocks of the rows `first` up to `last`; a run is `unit` numbers."""
        taps, c, few = s.kh * s.kw, s.c, TALLEST
        runs = f.ceiling(c, unit)
        depth_step = f.ceiling(f.ceiling(c, f.ceiling(c, MOST_DEPTH)), unit) * unit
        tap_step = f.ceiling(taps, f.ceiling(taps, TABLE // few))
        tap_step = f.select(c <= depth_step, tap_step, 1)
        whole = (taps <= tap_step) & (c <= depth_step)
        most = f.integer(TABLE) // tap_step
        most = f.select(whole, f.smaller(most, BLOCK_ROWS), few)
        all_rows = f.larger(last - first, 1)
        rows = f.ceiling(all_rows, f.ceiling(all_rows, most))
        return Blocks(taps, runs, depth_step, tap_step, whole, rows)


@dataclass(frozen=True)
class IntegerConv2d(Kernel):
    """A convolution of any kernel, stride, dilation and padding."""

    output: Output = "f32"
    bits: int = 8
    """Bits of a stored weight; ternary ones have 2."""
    unsigned: bool = False
    """Whether no number of x is negative; see `takes_unsigned`."""

    @property
    def fields(self) -> Fields:
        return Fields(self.isa, self.bits, self.unsigned)

    @property
    def symbol(self) -> str:
        return f"fewbit_conv2d_{self.fields.name}_{self.output}"

    def pack(self, weight: Bytes) -> Bytes:
        """Return the weight [oc, c, kh, kw] of one group, in panels."""
        oc, c, kh, kw = weight.shape
        taps, depth = self._taps(c, kh, kw)
        steps = weight.transpose(2, 3, 1, 0).reshape(taps, depth, oc)
        if not (takes_strips(kh, kw, c, self.isa) and shifts(self.fields)):
            return pack_taps(steps, self.fields)
        packed, offsets = (
            pack_taps(steps, as_unsigned(self.fields)),
            column_offsets(steps, self.isa),
        )
        return np.concatenate([packed, offsets.view(np.int8)])

    def unpack(self, packed: Bytes, oc: int, c: int, kh: int, kw: int) -> Bytes:
        shifted = takes_strips(kh, kw, c, self.isa) and shifts(self.fields)
        fields = as_unsigned(self.fields) if shifted else self.fields
        taps = unpack_taps(packed, *self._taps(c, kh, kw), oc, fields)
        return taps.reshape(kh, kw, c, oc).transpose(3, 2, 0, 1)

    def _taps(self, c: int, kh: int, kw: int) -> tuple[int, int]:
        return (kh, kw * c) if takes_strips(kh, kw, c, self.isa) else (kh * kw, c)

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS.format(pointers(self.output)), public=True)
        s = Sizes.load(f, f.parameters[-5])
        strips = are_taken(f, s.kh, s.kw, s.c)
        for taken, way in ((strips, over_strips), (strips.equals(0), over_taps)):
            with f.when(taken):
                f.call(way(self.fields, self.output), *f.parameters)
        return f


def shifts(fields: Fields) -> bool:
    """Return whether a strip holds unsigned numbers because the dot product takes them."""
    return fields.bits == 8 and fields.bias != 0


def as_unsigned(fields: Fields) -> Fields:
    return replace(fields, unsigned=True)


def _share(f: Function, s: Sizes, thread: Value, threads: Value) -> Share:
    return share(f, s.batch * s.oh * s.ow, s.oc, s.kh * s.kw * s.c, thread, threads)


@cache
def over_strips(fields: Fields, output: Output) -> Function:
    """Return the convolution in which a tap is a row of the kernel, in a strip."""
    f = Function(
        fields.isa, f"fewbit_strips_{fields.name}_{output}", PARAMETERS.format(pointers(output))
    )
    x, w, x_scale, together, w_scale, bias, add, *more = f.parameters
    *outputs, sizes, lo, hi, thread, threads = more
    s, isa = Sizes.load(f, sizes), fields.isa
    row_first, row_last, first, last = _share(f, s, thread, threads)
    here = Rows.make(f, fields, BLOCK_ROWS)
    table = f.array("ptr", BLOCK_ROWS + GROUP)
    room = f.array("i8", ROOM + SLACK)
    shifted, run, one = shifts(fields), s.kw * s.c, f.integer(1)
    taps_runs = s.kh * f.ceiling(run, fields.unit)
    columns = f.ceiling(s.oc, isa.lanes) * isa.lanes
    offsets = f.at(w, taps_runs * columns, f"[{fields.run_vectors * isa.step} x i8]")
    with f.loop(row_first, row_last) as over_rows:
        row = over_rows.index
        strip = Strip.at(f, s, row, row_last)
        rows = over_rows.step = strip.rows
        copy_strip(f, s, strip, x, sizes, room, shifted)
        point_into_strip(f, s, strip, room, table)
        here.begin(f, output, x_scale, together, row, rows)
        if not shifted:
            here.clear(f, rows)
            here.add(f, table, 0, strip.pitch, rows, s.kh, run)
        f.call(
            sweep_of(as_unsigned(fields) if shifted else fields, output, shifted=shifted),
            *(table, 0, strip.pitch, rows, s.kh, f.larger(run, isa.step)),
            *(w, 0, taps_runs, one, one),
            *(offsets if shifted else here.offsets, here.scales, here.sums),
            *(w_scale, bias, row_of(f, add, row * s.y_stride)),
            *advance(f, output, outputs, row * s.y_stride),
            *(s.y_stride, s.oc, first, last, lo, hi),
        )
    return f


@cache
def over_taps(fields: Fields, output: Output) -> Function:
    """Return the convolution in which each tap has its own pointers."""
    f = Function(
        fields.isa, f"fewbit_taps_{fields.name}_{output}", PARAMETERS.format(pointers(output))
    )
    x, w, x_scale, together, w_scale, bias, add, *more = f.parameters
    *outputs, sizes, lo, hi, thread, threads = more
    s = Sizes.load(f, sizes)
    row_first, row_last, first, last = _share(f, s, thread, threads)
    isa, step = fields.isa, fields.isa.step
    here = Rows.make(f, fields, BLOCK_ROWS)
    places = f.array("i64", 3 * PLACES)
    table = f.array("ptr", TABLE + GROUP)
    room = f.array("i8", TABLE * step)
    cut = Blocks.of(f, s, fields.unit, row_first, row_last)
    taps, c, unit, runs = cut.taps, s.c, fields.unit, cut.runs
    tap_step, depth_step, most = cut.tap_step, cut.depth_step, cut.rows
    panels = f.select(cut.whole, f.larger(last - first, 1), 1)
    with f.loop(row_first, row_last, most) as over_rows:
        row = over_rows.index
        rows = f.smaller(row_last - row, most)
        f.call(locate(isa, 1), x, sizes, row, rows, places)
        here.begin(f, output, x_scale, together, row, rows)
        with f.loop(first, last, panels) as over_panels:
            panel = over_panels.index
            here.clear(f, rows)
            with f.loop(0, taps, tap_step) as along, f.loop(0, c, depth_step) as over_c:
                tap, channel = along.index, over_c.index
                tap_count = f.smaller(taps - tap, tap_step)
                depth = f.smaller(c - channel, depth_step)
                enough = f.larger(depth, step)
                f.call(
                    fill_table(isa, 1),
                    *(sizes, places, rows, tap, tap_count, s.kw, channel, table),
                )
                with f.when(depth < step):
                    f.call(widen(isa), table, rows * tap_count, depth, room)
                here.add(f, table, rows, 0, rows, tap_count, enough)
                ends = (taps <= tap + tap_count) & (c <= channel + depth)
                f.call(
                    sweep_of(fields, output),
                    table,
                    rows,
                    0,
                    rows,
                    tap_count,
                    enough,
                    w,
                    tap * runs + channel // unit,
                    taps * runs,
                    f.select((tap + channel).equals(0), 1, 0),
                    f.select(ends, 1, 0),
                    here.offsets,
                    here.scales,
                    here.sums,
                    w_scale,
                    bias,
                    row_of(f, add, row * s.y_stride),
                    *advance(f, output, outputs, row * s.y_stride),
                    s.y_stride,
                    s.oc,
                    panel,
                    f.smaller(panel + panels, last),
                    lo,
                    hi,
                )
    return f
