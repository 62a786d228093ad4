"""Tables of pointers: where in an image the rows of a tile are, for each tap of a kernel.

`locate` finds, once for a block of output pixels, the address of each pixel's first tap and its
place (top, left) in the image. `fill_table` adds a tap's offset to all of them, eight at a time.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.sweep import BLOCK_ROWS
from fewbit.toolchain.isa import Isa

GROUP = 8
"""Rows that are filled in together; a table has room for as many beyond its end."""
PLACES = BLOCK_ROWS + GROUP
"""Entries of each of the three lists in `places`: addresses, tops, lefts."""


@cache
def locate(isa: Isa, size: int = 4) -> Function:
    """Return the function that locates the first taps of output pixels, from `row` on.

    A number of the image has `size` bytes.
    """
    f = Function(
        isa,
        f"fewbit_locate_{8 * size}",
        "ptr x, ptr sizes, i64 row, i64 rows, ptr places",
        apart=True,
    )
    x, sizes, row, rows, places = f.parameters
    s = Sizes.load(f, sizes)
    line = row // s.ow
    image, oy, ox = line // s.oh, line % s.oh, row % s.ow
    top, left = oy * s.stride_h - s.pad_top, ox * s.stride_w - s.pad_left
    address = f.address(f.at(x, ((image * s.h + top) * s.w + left) * s.x_stride * size, "i8"))
    first_left = f.integer(0) - s.pad_left
    last_left = first_left + (s.ow - 1) * s.stride_w
    last_top = (s.oh - 1) * s.stride_h - s.pad_top
    step = s.stride_w * s.x_stride * size
    line_step = (s.stride_h * s.w - (s.ow - 1) * s.stride_w) * s.x_stride * size
    image_step = line_step + (s.h - s.oh * s.stride_h) * s.w * s.x_stride * size
    with f.loop(0, rows, carried=[address, top, left]) as loop:
        address, top, left = loop.carried
        for i, value in enumerate(loop.carried):
            f.store(value, places, loop.index + i * PLACES)
        line_ends = left.equals(last_left)
        image_ends = top.equals(last_top)
        end_step = f.select(image_ends, image_step, line_step)
        next_top = f.select(image_ends, f.integer(0) - s.pad_top, top + s.stride_h)
        loop.carry(
            address + f.select(line_ends, end_step, step),
            f.select(line_ends, next_top, top),
            f.select(line_ends, first_left, left + s.stride_w),
        )
    return f


@cache
def fill_table(isa: Isa, size: int = 4) -> Function:
    """Return the function that fills in pointers for taps `tap` and on, at a channel."""
    f = Function(
        isa,
        f"fewbit_fill_table_{8 * size}",
        "ptr sizes, ptr places, i64 rows, i64 tap, i64 taps, i64 kw, i64 channel, ptr table",
    )
    sizes, places, rows, tap, taps, kw, channel, table = f.parameters
    s = Sizes.load(f, sizes)

    def all_(value: Value) -> Value:
        return f.broadcast(value, GROUP)

    zeros, height, width = all_(f.address(f.zeros())), all_(s.h), all_(s.w)
    with f.loop(0, taps) as over_taps:
        number = tap + over_taps.index
        down, right = number // kw * s.dilation_h, number % kw * s.dilation_w
        offset = all_(((down * s.w + right) * s.x_stride + channel) * size)
        down, right = all_(down), all_(right)
        here = f.at(table, over_taps.index * rows, "ptr")
        with f.loop(0, rows, GROUP) as loop:
            address, top, left = (
                f.load(f"<{GROUP} x i64>", f.at(places, loop.index + i * PLACES, "i64"))
                for i in range(3)
            )
            seen = (top + down).inside(height) & (left + right).inside(width)
            f.store(f.select(seen, address + offset, zeros), f.at(here, loop.index, "ptr"))
    return f


@cache
def copy_edges(isa: Isa) -> Function:
    """Return the function that copies kernel rows which cross the image's edge to `room`."""
    f = Function(
        isa,
        "fewbit_copy_edges_f32",
        "ptr sizes, ptr places, i64 rows, i64 tap, i64 taps, ptr room, ptr table",
        apart=True,
    )
    sizes, places, rows, tap, taps, room, table = f.parameters
    s = Sizes.load(f, sizes)
    run = s.kw * s.c
    with f.loop(0, rows, carried=[room]) as over_rows:
        row, (copies,) = over_rows.index, over_rows.carried
        address, top, left = (f.load("i64", places, row + i * PLACES) for i in range(3))
        start, stop = _seen(f, s, left)
        cut = (stop - start).differs(s.kw)
        over_rows.carry(f.select(cut, f.at(copies, taps * run), copies))
        with f.when(cut & (start < stop)), f.loop(0, taps) as over_taps:
            down = (tap + over_taps.index) * s.dilation_h
            with f.when((top + down).inside(s.h)):
                source = f.at(f.pointer(address), down * s.w * s.x_stride)
                copy = f.at(copies, over_taps.index * run)
                with f.loop(0, run, isa.lanes) as loop:
                    at = loop.index
                    mask = f.first_lanes(stop * s.c - at) ^ f.first_lanes(start * s.c - at)
                    f.store(f.load_part(f.at(source, at), mask), f.at(copy, at))
                f.store(copy, table, over_taps.index * rows + row)
    return f


def rows_before(
    f: Function, s: Sizes, places: Value, rows: Value, copies: Value, matters: Value
) -> Value:
    """Return how many rows come before more than `copies` of them cross the image's edge."""
    none = f.integer(0)
    with f.loop(0, f.select(matters, rows, 0), carried=[none, none]) as loop:
        cuts, before = loop.carried
        start, stop = _seen(f, s, f.load("i64", places, loop.index + 2 * PLACES))
        now = f.select((stop - start).differs(s.kw), cuts + 1, cuts)
        loop.carry(now, f.select(now <= copies, loop.index + 1, before))
    return f.select(matters, loop.results[1], rows)


def _seen(f: Function, s: Sizes, left: Value) -> tuple[Value, Value]:
    """Return the columns of a kernel, from and up to, that are inside the image."""
    return f.larger(f.integer(0) - left, 0), f.smaller(s.w - left, s.kw)
