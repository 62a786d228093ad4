"""Pixels with few channels, gathered: all that a row of the product sees, one run of bytes.

With few channels, steps of single taps would be mostly empty. So a block of rows is copied to the
stack, kernel row by kernel row: in the image, each is one run of memory unless pixels are apart.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.tile import TALLEST
from fewbit.kernels.isa import Isa
from fewbit.kernels.table import PLACES

ROOM = 8192
"""Bytes for gathered rows."""
CHUNKS = (16, 32, 64)
"""Bytes that are copied at once; a kernel's row that is gathered has no more than the last."""
LONGEST_RUN = 64


def is_gathered(kh: int, kw: int, c: int, isa: Isa) -> bool:
    """Whether a kernel of this size takes gathered rows; its weight is packed accordingly."""
    fits = kw * c <= LONGEST_RUN and kh * kw * c <= ROOM // TALLEST
    return fits and (kh * kw > 1 or c < isa.step)


def gathers(f: Function, s: Sizes) -> Value:
    """The same, in a function."""
    run = s.kw * s.c
    fits = (run <= LONGEST_RUN) & (s.kh * run <= ROOM // TALLEST)
    return fits & ((s.kh * s.kw).equals(1) & (s.c >= f.isa.step)).equals(0)


@cache
def gather(isa: Isa) -> Function:
    """Rows at `places` as runs of `depth` bytes in `room`, and a table of them."""
    f = Function(
        isa,
        "fewbit_gather_i8",
        "ptr sizes, ptr places, i64 rows, i64 depth, ptr room, ptr table",
    )
    s = Sizes.load(f, f.parameters[0])
    dense = s.x_stride.equals(s.c) & s.dilation_w.equals(1)
    chunk = f.integer(0)
    if isa.vector_bits == 8 * LONGEST_RUN:
        for size in reversed(CHUNKS):
            chunk = f.select(dense & (s.kw * s.c <= size), size, chunk)
    cases = [(size, gather_runs(isa, size)) for size in CHUNKS]
    f.switch(chunk, [*cases, (0, gather_bytes(isa))], *f.parameters)
    return f


@cache
def gather_runs(isa: Isa, chunk: int) -> Function:
    """Gather where a kernel's row is one run, by one masked copy, zeros outside the image."""
    f = Function(
        isa,
        f"fewbit_gather_runs_i8_{chunk}",
        "ptr sizes, ptr places, i64 rows, i64 depth, ptr room, ptr table",
    )
    sizes, places, rows, depth, room, table = f.parameters
    s = Sizes.load(f, sizes)
    run, line = s.kw * s.c, s.dilation_h * s.w * s.x_stride
    with f.loop(0, rows) as over_rows:
        row = over_rows.index
        address, top, left = (f.load("i64", places, row + i * PLACES) for i in range(3))
        to = f.at(room, row * depth, "i8")
        f.store(to, table, row)
        before = f.larger(f.integer(0) - left, 0) * s.c
        after = f.larger(f.smaller(s.w - left, s.kw) * s.c, before)
        seen = _bits(f, after) ^ _bits(f, before)
        with f.loop(0, s.kh, carried=[f.pointer(address), to, top]) as down:
            source, copy, y = down.carried
            mask = f.select(y.inside(s.h), seen, 0)
            if chunk < LONGEST_RUN:
                mask = f.convert("trunc", mask, f"i{chunk}")
            mask = f.bits(mask, f"<{chunk} x i1>")
            f.store(f.load_part(source, mask, "i8"), copy)
            down.carry(f.at(source, line, "i8"), f.at(copy, run, "i8"), y + s.dilation_h)
    return f


@cache
def gather_bytes(isa: Isa) -> Function:
    """Gather one byte after another."""
    f = Function(
        isa,
        "fewbit_gather_bytes_i8",
        "ptr sizes, ptr places, i64 rows, i64 depth, ptr room, ptr table",
    )
    sizes, places, rows, depth, room, table = f.parameters
    s = Sizes.load(f, sizes)
    with f.loop(0, rows) as over_rows:
        row = over_rows.index
        address, top, left = (f.load("i64", places, row + i * PLACES) for i in range(3))
        to = f.at(room, row * depth, "i8")
        f.store(to, table, row)
        with f.loop(0, depth) as along:
            f.store(Value(f, "i8", "0"), to, along.index)
        with f.loop(0, s.kh) as down, f.loop(0, s.kw) as right:
            y, x = down.index * s.dilation_h, right.index * s.dilation_w
            source = f.at(f.pointer(address), (y * s.w + x) * s.x_stride, "i8")
            copy = f.at(to, (down.index * s.kw + right.index) * s.c, "i8")
            with f.when((top + y).inside(s.h) & (left + x).inside(s.w)), f.loop(0, s.c) as along:
                f.store(f.load("i8", source, along.index), copy, along.index)
    return f


def _bits(f: Function, count: Value) -> Value:
    """As many ones, from the lowest bit on; at most 63, or 64 and more for all."""
    some = f.set("i64", f"shl i64 1, {f.smaller(count, LONGEST_RUN - 1)}") - 1
    return f.select(count < LONGEST_RUN, some, -1)
