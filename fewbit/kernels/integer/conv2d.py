"""Convolution of bytes: rows are pointers into the image, or gathered where channels are few.

    void fewbit_conv2d_i8_*(ptr x, ptr w_packed, ptr x_scale, i64 rows_per_scale, ptr w_scale,
                            ptr bias, ptr add, ptr y, ptr sizes, float lo, float hi,
                            i64 thread, i64 threads)

As the convolution of floats, `sizes` and groups included. `output.py` says what y is.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import MOST_DEPTH, Function
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.gather import ROOM, gather, gathers, is_gathered
from fewbit.kernels.integer.output import Output, moved, pointers
from fewbit.kernels.integer.pack import pack_taps, unpack_taps, widen
from fewbit.kernels.integer.sweep import Rows, sweep_of
from fewbit.kernels.integer.tile import TALLEST
from fewbit.kernels.kernel import Bytes, Kernel
from fewbit.kernels.sweep import BLOCK_ROWS, row_of, share
from fewbit.kernels.table import GROUP, PLACES, fill_table, locate

TABLE = 1024
"""Pointers in the table of a block: rows times taps."""
PARAMETERS = (
    "ptr x, ptr w_packed, ptr x_scale, i64 rows_per_scale, ptr w_scale, ptr bias, ptr add, {}, "
    "ptr sizes, float lo, float hi, i64 thread, i64 threads"
)


@dataclass(frozen=True)
class IntegerConv2d(Kernel):
    """A convolution of any kernel, stride, dilation and padding."""

    output: Output = "f32"
    bits: int = 8
    """Of the weight, as it is stored; ternary ones have 2."""
    unsigned: bool = False
    """Whether no number of x is negative; see `takes_unsigned`."""

    @property
    def fields(self) -> Fields:
        return Fields(self.isa, self.bits, self.unsigned)

    @property
    def symbol(self) -> str:
        return f"fewbit_conv2d_{self.fields.name}_{self.output}"

    def pack(self, weight: Bytes) -> Bytes:
        """The weight [oc, c, kh, kw] of one group, in panels."""
        oc, c, kh, kw = weight.shape
        taps, depth = self._taps(c, kh, kw)
        steps = weight.transpose(2, 3, 1, 0).reshape(taps, depth, oc)
        return pack_taps(steps, self.fields)

    def unpack(self, packed: Bytes, oc: int, c: int, kh: int, kw: int) -> Bytes:
        taps = unpack_taps(packed, *self._taps(c, kh, kw), oc, self.fields)
        return taps.reshape(kh, kw, c, oc).transpose(3, 2, 0, 1)

    def _taps(self, c: int, kh: int, kw: int) -> tuple[int, int]:
        return (1, kh * kw * c) if is_gathered(kh, kw, c, self.isa) else (kh * kw, c)

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS.format(pointers(self.output)), public=True)
        x, w, x_scale, together, w_scale, bias, add, *rest = f.parameters
        *outputs, sizes, lo, hi, thread, threads = rest
        s = Sizes.load(f, sizes)
        m = s.batch * s.oh * s.ow
        k = s.kh * s.kw * s.c
        row_first, row_last, first, last = share(f, m, s.oc, k, thread, threads)
        fields, step, few = self.fields, self.isa.step, TALLEST
        here = Rows.make(f, fields, BLOCK_ROWS)
        places = f.array("i64", 3 * PLACES)
        table = f.array("ptr", TABLE + GROUP)
        room = f.array("i8", ROOM + 64)

        gathered = gathers(f, s)
        taps = f.select(gathered, 1, s.kh * s.kw)
        c = f.select(gathered, s.kh * s.kw * s.c, s.c)
        unit = fields.unit
        runs = f.ceiling(c, unit)
        depth_step = f.ceiling(f.ceiling(c, f.ceiling(c, MOST_DEPTH)), unit) * unit
        tap_step = f.ceiling(taps, f.ceiling(taps, TABLE // few))
        tap_step = f.select(c <= depth_step, tap_step, 1)
        whole = (taps <= tap_step) & (c <= depth_step)
        most = f.select(
            gathered,
            f.integer(ROOM) // f.larger(c, step),
            f.integer(TABLE) // tap_step,
        )
        most = f.select(whole, f.smaller(most, BLOCK_ROWS), few)
        all_rows = f.larger(row_last - row_first, 1)
        most = f.ceiling(all_rows, f.ceiling(all_rows, most))
        panels = f.select(whole, f.larger(last - first, 1), 1)
        with f.loop(row_first, row_last, most) as over_rows:
            row = over_rows.index
            rows = f.smaller(row_last - row, most)
            f.call(locate(self.isa, 1), x, sizes, row, rows, places)
            here.begin(f, self.output, x_scale, together, row, rows)
            with f.loop(first, last, panels) as over_panels:
                panel = over_panels.index
                here.clear(f, rows)
                with f.loop(0, taps, tap_step) as over_taps, f.loop(0, c, depth_step) as over_c:
                    tap, channel = over_taps.index, over_c.index
                    tap_count = f.smaller(taps - tap, tap_step)
                    depth = f.smaller(c - channel, depth_step)
                    enough = f.larger(depth, step)
                    with f.when(gathered):
                        f.call(gather(self.isa), sizes, places, rows, enough, room, table)
                    with f.when(gathered.equals(0)):
                        f.call(
                            fill_table(self.isa, 1),
                            *(sizes, places, rows, tap, tap_count, s.kw, channel, table),
                        )
                        with f.when(depth < step):
                            f.call(widen(self.isa), table, rows * tap_count, depth, room)
                    here.add(f, table, rows, tap_count, enough)
                    ends = (taps <= tap + tap_count) & (c <= channel + depth)
                    f.call(
                        sweep_of(fields, self.output),
                        table,
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
                        *moved(f, self.output, outputs, row * s.y_stride),
                        s.y_stride,
                        s.oc,
                        panel,
                        f.smaller(panel + panels, last),
                        lo,
                        hi,
                    )
        return f
