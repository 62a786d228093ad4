"""Convolutions of few-bit numbers by popcount.

    void fewbit_conv2d_i1w1_*(the arguments of fewbit_conv2d_i8_*)

For a block of output pixels, the lines of the image that they see are packed into bits on the
stack: each pixel is a record. Pixels that share a line share what is packed of it. The table of a
kernel's taps is then that of an image whose numbers are bytes of records.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace

from fewbit.errors import UnsupportedError
from fewbit.kernels.bits.kernel import ROOM, BitKernel
from fewbit.kernels.bits.planes import (
    WORD,
    pack_planes,
    pack_records,
    record_bytes,
    unpack_planes,
)
from fewbit.kernels.bits.sweep import MOST_TAPS, sweep
from fewbit.kernels.emit import MOST_DEPTH, Function
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.conv2d import PARAMETERS, TABLE
from fewbit.kernels.integer.output import advance, pointers
from fewbit.kernels.kernel import Bytes
from fewbit.kernels.sweep import BLOCK_ROWS, row_of, share
from fewbit.kernels.table import GROUP, PLACES, fill_table, locate


@dataclass(frozen=True)
class BitConv2d(BitKernel):
    """A convolution of any stride, dilation and padding, of images that are not too wide."""

    @property
    def symbol(self) -> str:
        return f"fewbit_conv2d_{self.pair.name}_{self.output}"

    def fits(
        self, c: int, kh: int, kw: int, width: int, stride_h: int = 1, dilation_h: int = 1
    ) -> bool:
        """Return whether there is room for what two lines of outputs see of an image so wide."""
        record = self.pair.record(c)
        lines = (kh - 1) * dilation_h + 1 + stride_h
        fits = kh * kw <= MOST_TAPS and record <= MOST_DEPTH
        return c > 0 and fits and lines * width * record <= ROOM

    def pack(self, weight: Bytes) -> Bytes:
        """Return the weight [oc, c, kh, kw] of one group, in panels."""
        oc, c, kh, kw = weight.shape
        if not self.fits(c, kh, kw, 1):
            raise UnsupportedError(
                f"'{self.symbol}' takes no kernels of {kh}x{kw} with {c} channels",
                hint="use `IntegerConv2d`, which takes any",
            )
        return pack_planes(weight.transpose(2, 3, 1, 0).reshape(kh * kw, c, oc), self.pair)

    def unpack(self, packed: Bytes, oc: int, c: int, kh: int, kw: int) -> Bytes:
        taps = unpack_planes(packed, kh * kw, c, oc, self.pair)
        return taps.reshape(kh, kw, c, oc).transpose(3, 2, 0, 1)

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS.format(pointers(self.output)), public=True)
        x, w, x_scale, together, w_scale, bias, add, *more = f.parameters
        *outputs, sizes, lo, hi, thread, threads = more
        s = Sizes.load(f, sizes)
        pixels, k = s.oh * s.ow, s.kh * s.kw * s.c
        m = s.batch * pixels
        row_first, row_last, first, last = share(f, m, s.oc, k, thread, threads)
        room, table = f.array("i8", ROOM), f.array("ptr", TABLE + GROUP)
        places = f.array("i64", 3 * PLACES)

        record = record_bytes(f, self.pair, s.c)
        packed = f.array("i64", len(astuple(s)))
        for i, size in enumerate(vars(replace(s, x_stride=record)).values()):
            f.store(size, packed, i)
        taps, line = s.kh * s.kw, s.w * record
        reach = (s.kh - 1) * s.dilation_h + 1
        # As many lines of outputs as there is room for, but a block may begin within the first.
        lines = (f.integer(ROOM) // line - reach) // s.stride_h
        most = f.smaller(f.smaller(lines * s.ow, f.integer(TABLE) // taps), BLOCK_ROWS)
        with f.loop(row_first, row_last) as over_rows:
            row = over_rows.index
            image, pixel = row // pixels, row % pixels
            rows = f.smaller(f.smaller(row_last - row, most), pixels - pixel)
            over_rows.step = rows
            top = f.larger(pixel // s.ow * s.stride_h - s.pad_top, 0)
            bottom = (pixel + rows - 1) // s.ow * s.stride_h - s.pad_top + reach
            height = f.larger(f.smaller(bottom, s.h) - top, 0)
            seen = (image * s.h + top) * s.w
            f.call(
                pack_records(self.pair),
                f.at(x, seen * s.x_stride, "i8"),
                s.x_stride,
                height * s.w,
                s.c,
                room,
            )
            origin = f.at(room, f.integer(0) - seen * record, "i8")
            f.call(locate(self.isa, 1), origin, packed, row, rows, places)
            f.call(fill_table(self.isa, 1), packed, places, rows, 0, taps, s.kw, 0, table)
            f.call(
                sweep(self.pair, self.output),
                table,
                row,
                rows,
                taps,
                f.ceiling(s.c, WORD),
                w,
                x_scale,
                together,
                w_scale,
                bias,
                row_of(f, add, row * s.y_stride),
                *advance(f, self.output, outputs, row * s.y_stride),
                s.y_stride,
                s.oc,
                first,
                last,
                lo,
                hi,
            )
        return f
