"""Depthwise convolution of bytes: vectors run along channels, as in the one of floats.

    void fewbit_depthwise_i8_*(the arguments of fewbit_conv2d_i8_*)

Neighbouring output pixels share each vector of weights, and the scale of their image. Weights are
stored tap by tap, and below 8 bits at their width: a block of channels is unpacked on the stack
first, which is little beside the image that it meets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from fewbit.errors import UnsupportedError
from fewbit.kernels.activation import apply_activation
from fewbit.kernels.depthwise import MOST_PIXELS, neighbours
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.columns import (
    AT_ONCE,
    CHUNK,
    SIDE,
    columns,
    columns_fit,
    make_columns,
    multiplies_columns,
)
from fewbit.kernels.integer.conv2d import PARAMETERS
from fewbit.kernels.integer.dot import multiply_lanes, weights, widen
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.output import (
    LARGEST,
    SCALED,
    Columns,
    Output,
    activation_of,
    advance,
    plain,
    pointers,
)
from fewbit.kernels.kernel import Bytes, Kernel
from fewbit.kernels.largest_magnitudes import larger_magnitudes
from fewbit.kernels.pack import packed_size
from fewbit.kernels.steps import Rounding
from fewbit.kernels.sweep import row_of
from fewbit.toolchain.isa import Isa

ROOM = 9216
"""Bytes on the stack for unpacked weights, or their columns."""
BLOCK = 64
"""Channels are taken in blocks of a multiple of these, as many as there is room for."""


@dataclass(frozen=True)
class IntegerDepthwise(Kernel):
    """One output channel for each input channel; any kernel, stride, dilation and padding."""

    output: Output = "f32"
    bits: int = 8
    """Bits of a stored weight; ternary ones have 2. Fewer than 8 must fit (`fits`)."""

    @property
    def fields(self) -> Fields:
        return Fields(self.isa, self.bits)

    @property
    def symbol(self) -> str:
        return f"fewbit_depthwise_{self.fields.name}_{self.output}"

    @staticmethod
    def fits(kh: int, kw: int) -> bool:
        """Return whether there is room for filters of so many taps, with weights below 8 bits."""
        return kh * kw * BLOCK <= ROOM

    def pack(self, weight: Bytes) -> Bytes:
        """Return the weight [c, 1, kh, kw] channels-last, padded to whole vectors.

        Below 8 bits, a block of channels is one run of numbers, tap by tap.
        """
        c, _, kh, kw = weight.shape
        rows = weight.reshape(c, kh * kw).T
        if self.bits == 8:
            packed = np.zeros((kh * kw, packed_size(1, c, self.isa)), np.int8)
            packed[:, :c] = rows
            return packed.ravel()
        if not self.fits(kh, kw):
            raise UnsupportedError(
                f"'{self.symbol}' takes no kernels of {kh}x{kw}", hint="keep their weights in bytes"
            )
        most = _block(kh * kw)
        return np.concatenate(
            [self._pack_block(rows[:, at : at + most]) for at in range(0, c, most)]
        )

    def _pack_block(self, rows: Bytes) -> Bytes:
        fields, width = self.fields, self.isa.lanes * self.isa.step
        numbers = fields.number(np.ascontiguousarray(rows)).ravel()
        runs = -(-numbers.size // (fields.run * width))
        filled = np.zeros(runs * fields.run * width, np.uint8)
        filled[: numbers.size] = numbers
        return fields.join(filled.reshape(runs, fields.run, width)).ravel().view(np.int8)

    def unpack(self, packed: Bytes, c: int, kh: int, kw: int) -> Bytes:
        taps = kh * kw
        if self.bits == 8:
            return packed.reshape(taps, -1)[:, :c].T.reshape(c, 1, kh, kw)
        fields, width = self.fields, self.isa.lanes * self.isa.step
        steps = fields.part(packed.view(np.uint8).reshape(-1, fields.run_vectors, width))
        numbers, most = steps.reshape(-1, fields.run * width), _block(taps)
        rows: list[Bytes] = []
        for at in range(0, c, most):
            size = min(c - at, most) * taps
            runs = -(-size // numbers.shape[1])
            rows.append(fields.weight(numbers[:runs].ravel()[:size]).reshape(taps, -1))
            numbers = numbers[runs:]
        return np.concatenate(rows, 1).T.reshape(c, 1, kh, kw)

    def function(self) -> Function:
        isa, fields = self.isa, self.fields
        f = Function(isa, self.symbol, PARAMETERS.format(pointers(self.output)), public=True)
        w, sizes = f.parameters[1], f.parameters[-5]
        s = Sizes.load(f, sizes)
        taps, fast = s.kh * s.kw, columns_fit(f, s)
        made_columns, few = self._buffers(f)
        if few is None and made_columns is None:
            self._channels(f, s, w, f.ceiling(s.c, isa.lanes) * isa.lanes, f.integer(0), s.c)
            return f
        most = f.integer(ROOM // BLOCK) // taps * BLOCK
        if few is None:
            most = f.select(fast, most, f.larger(s.c, 1))
        with f.loop(0, s.c, most) as blocks:
            first, count = blocks.index, f.smaller(s.c - blocks.index, most)
            if few is None:
                rows, step = f.at(w, first, "i8"), f.ceiling(s.c, isa.lanes) * isa.lanes
            else:
                rows, step = few, count
                width = isa.lanes * isa.step
                unit, each = fields.run * width, fields.run_vectors * width
                place = first // most * f.ceiling(taps * most, unit) * each
                runs = f.ceiling(taps * count, unit)
                f.call(unpack_rows(isa, self.bits), f.at(w, place, "i8"), runs, rows)
            if made_columns is not None:
                with f.when(fast):
                    f.call(make_columns(isa), rows, step, count, made_columns)
            self._channels(f, s, rows, step, first, count, made_columns)
        return f

    def _buffers(self, f: Function) -> tuple[Value | None, Value | None]:
        """Return buffers for columns and for weights in bytes, as far as they are needed.

        Columns are in front, as near to the sums of tiles as if they were alone: at some distances
        processors take a read of one for a read of what was just written to the other.
        """
        of_columns = ROOM // SIDE**2 // BLOCK * CHUNK if multiplies_columns(self.isa) else 0
        of_bytes = ROOM + self.fields.run * self.isa.lanes * self.isa.step if self.bits < 8 else 0
        room = f.array("i8", of_columns + of_bytes)
        return room if of_columns else None, f.at(room, of_columns, "i8") if of_bytes else None

    def _channels(
        self,
        f: Function,
        s: Sizes,
        w: Value,
        w_step: Value,
        first: Value,
        count: Value,
        made_columns: Value | None = None,
    ) -> None:
        """Compute `count` channels of all pixels, from the first on, with their weights."""
        x, _, x_scale, together, w_scale, bias, add, *more = f.parameters
        *outputs, sizes, lo, hi, thread, threads = more
        scaled = self.output in SCALED
        fast = columns_fit(f, s)
        most = f.select(fast, AT_ONCE, MOST_PIXELS)
        spread = together if scaled else None
        x, w_scale = f.at(x, first, "i8"), f.at(w_scale, first)
        with neighbours(f, s, thread, threads, most, spread, fast) as p:
            to = p.pixel * s.y_stride + first
            ends = (
                f.at(x_scale, p.pixel // together) if scaled else x_scale,
                w_scale,
                row_of(f, bias, first),
                row_of(f, add, to),
                *advance(f, self.output, outputs, to),
                s.y_stride,
                count,
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
            if made_columns is not None:
                corner = f.at(x, p.corner, "i8")
                with f.when(fast):
                    f.call(
                        columns(self.isa, self.output),
                        *(sizes, corner, p.top, p.left, made_columns, p.count, *ends),
                    )


def _block(taps: int) -> int:
    """Return how many channels there is room for at once."""
    return ROOM // BLOCK // taps * BLOCK


@cache
def unpack_rows(isa: Isa, bits: int) -> Function:
    """Return the function that unpacks weights of so many bits to bytes."""
    fields = Fields(isa, bits)
    f = Function(isa, f"fewbit_take_rows_apart_{fields.name}", "ptr w, i64 runs, ptr to")
    w, runs, to = f.parameters
    width = isa.lanes * isa.step
    bias = f.broadcast(f.constant("i8", fields.bias), width)
    with f.loop(0, runs) as loop:
        run = f.at(w, loop.index * (fields.run_vectors * width), "i8")
        stored = [weights(f, run, i) for i in range(fields.run_vectors)]
        place = f.at(to, loop.index * (fields.run * width), "i8")
        for s in range(fields.run):
            f.store(fields.take(f, stored, s) - bias, place, s)
    return f


@cache
def depthwise_tile(isa: Isa, output: Output, pixels: int) -> Function:
    """Return the function for all channels of neighbouring pixels, and taps inside the image."""
    f = Function(
        isa,
        f"fewbit_depthwise_tile_i8_{output}_{pixels}",
        "ptr x, i64 x_step, i64 x_row_step, i64 x_column_step, ptr w, i64 w_row_step, "
        "i64 w_column_step, i64 rows, i64 across, ptr x_scale, ptr w_scale, ptr bias, ptr add, "
        f"{pointers(output)}, i64 y_step, i64 c, float lo, float hi",
        apart=True,
    )
    x, x_step, x_row, x_column, w, w_row, w_column, rows, across, *more = f.parameters
    x_scale, w_scale, bias, add, *to, y_step, c, lo, hi = more
    lanes = isa.lanes
    low, high = f.broadcast(lo), f.broadcast(hi)
    scale = f.broadcast(f.load("float", x_scale)) if output in SCALED else None
    absent = add.is_null()
    nothing = f.broadcast(f.number(-0.0))
    rounding = Rounding.load(f, to[2]) if plain(output) == "steps" else None

    def store(
        common: Columns, totals: list[Value], places: list[Value], mask: Value | None
    ) -> None:
        """Store the same channels of some pixels."""
        if scale is None:
            for total, place in zip(totals, places, strict=True):
                common.store_integers(f, output, total, to, place, mask)
            return
        values: list[Value] = []
        for total, place in zip(totals, places, strict=True):
            source = f.select(absent, f.zeros(), f.at(add, place))
            more = f.select(absent, nothing, f.load_part(source, mask))
            values.append(common.add_bias(common.dequantize(f, total, scale), more))
        values = apply_activation(values, activation_of(output))
        if output == LARGEST:
            results = [common.clamp(f, value) for value in values]
            most = f.load(f"<{lanes} x i32>", to[1])
            f.store(larger_magnitudes(f, most, results, mask), to[1])
        for value, place in zip(values, places, strict=True):
            if rounding is None:
                f.store_part(common.clamp(f, value), f.at(to[0], place), mask)
                continue
            f.store_part(rounding.bytes_of(f, value), f.at(to[1], place, "i8"), mask)
            with f.when(to[0].is_null().equals(0)):
                f.store_part(common.clamp(f, value), f.at(to[0], place), mask)

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
                factors = [widen(f, f.load(f"<{lanes} x i8>", w_tap, v)) for v in range(vectors)]
                accumulators: list[Value] = []
                for (p, v), total in zip(cells, over_columns.carried, strict=True):
                    place = f.at(f.at(x_tap, x_step * p, "i8"), v * lanes, "i8")
                    seen = f.convert("sext", f.load_part(place, mask, "i8"), "i32")
                    accumulators.append(multiply_lanes(f, seen, factors[v], total))
                over_columns.carry(*accumulators)
            over_rows.carry(*over_columns.results)
        for v in range(vectors):
            at = channel + v * lanes
            common = Columns.load(f, output, w_scale, bias, at, mask, low, high)
            for first in range(0, pixels, isa.tile_vectors):
                some = range(first, min(first + isa.tile_vectors, pixels))
                totals = [over_rows.results[p * vectors + v] for p in some]
                store(common, totals, [y_step * p + at for p in some], mask)

    vectors = max(1, isa.registers // 2 // pixels)
    width = vectors * lanes
    whole = c // width * width
    with f.loop(0, whole, width) as loop:
        channels(loop.index, vectors, None)
    with f.loop(whole, c, lanes) as loop:
        channels(loop.index, 1, f.first_lanes(c - loop.index))
    return f
