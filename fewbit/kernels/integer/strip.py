"""Strips: what a block of output pixels sees of an image, copied to the stack with zeros around it.

In a strip, a kernel's row is one run of bytes for every pixel, edges included. So it is one tap, a
line of the strip further on than the one before: neighbours share what they see, no pixel is
unfolded, and no table of taps is needed. This is for kernels whose rows are short, because a strip
is small then, and steps of single taps would be short or not even full.

Where a row of the kernel is no run of the image, because its taps or the image's pixels are apart,
or where pixels share nothing, a line of the strip is the runs of its pixels, one after another.

Unsigned dot products need unsigned rows or weights. The copy can make rows unsigned, by adding 128
to every number and to the zeros: sums are then too large by 128 times the sum of a column's
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Generic

from fewbit.kernels.cuts import Arithmetic, Known, Number, S, T
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.image import Sizes
from fewbit.kernels.integer.dot import BIAS, MASKED
from fewbit.kernels.integer.tile import TALLEST
from fewbit.kernels.sweep import BLOCK_ROWS
from fewbit.kernels.table import GROUP
from fewbit.toolchain.isa import Isa

ROOM = 16384
"""Bytes of a strip."""
SLACK = 64
"""Bytes that a copy, or the last step of a run, may go beyond it."""
LONGEST_RUN = 128


def takes_strips(kh: int, kw: int, c: int, isa: Isa) -> bool:
    """Return whether a kernel of this size takes strips; its weight is packed accordingly."""
    return bool(int(are_taken(Known(isa), Number(kh), Number(kw), Number(c))))


def are_taken(f: Arithmetic[T], kh: T, kw: T, c: T) -> T:
    """Return `takes_strips` of sizes that only the run knows."""
    run = kw * c
    fits = (run <= LONGEST_RUN) & (kh * run <= ROOM // TALLEST)
    return fits & ((kh * kw).equals(1) & (c >= f.isa.step)).equals(0)


@dataclass(frozen=True)
class Strip(Generic[S]):
    """A block of outputs, `lines` of `across` pixels each, and the lines of the image it sees."""

    row: S
    lines: S
    across: S
    count: S
    """Lines of the strip, so many lines of the image apart."""
    apart: S
    pitch: S
    """Bytes of a line, of which a pixel's run begins `step` after that of its neighbour."""
    step: S

    @staticmethod
    def at(f: Arithmetic[T], s: Sizes[T], row: T, stop: T) -> Strip[T]:
        """Return the block from a row on: part of a line, or as many whole lines as fit."""
        run, step = s.kw * s.c, f.select(is_dense(s), s.stride_w, s.kw) * s.c
        remaining = f.smaller(s.ow - row % s.ow, stop - row)
        most = f.smaller((f.integer(ROOM) // s.kh - run) // step + 1, BLOCK_ROWS)
        across = f.ceiling(remaining, f.ceiling(remaining, most))
        pitch = (across - 1) * step + run
        room = (f.integer(ROOM) // pitch - s.kh) // s.stride_h + 1
        left = f.smaller((stop - row) // s.ow, s.oh - row // s.ow % s.oh)
        lines = f.smaller(f.smaller(room, f.integer(BLOCK_ROWS) // across), left)
        whole = across.equals(s.ow) & s.dilation_h.equals(1)
        lines = f.select(whole, lines, 1)
        count = (lines - 1) * s.stride_h + s.kh
        return Strip(row, lines, across, count, s.dilation_h, pitch, step)

    @property
    def rows(self) -> S:
        return self.lines * self.across


def copy_strip(
    f: Function,
    s: Sizes,
    strip: Strip,
    x: Value,
    sizes: Value,
    room: Value,
    shift: bool,
) -> None:
    """Copy what a block sees of an image."""
    line = strip.row // s.ow
    image, oy, ox = line // s.oh, line % s.oh, strip.row % s.ow
    top, left = oy * s.stride_h - s.pad_top, ox * s.stride_w - s.pad_left
    here = f.at(x, ((image * s.h + top) * s.w + left) * s.x_stride, "i8")
    part = (strip.count, strip.apart, strip.across, strip.pitch)
    copies = [(1, copy_lines(f.isa, shift)), (0, copy_runs(f.isa, shift))]
    f.switch(f.select(is_dense(s), 1, 0), copies, here, sizes, top, left, *part, room)


def point_into_strip(f: Function, s: Sizes, strip: Strip, room: Value, table: Value) -> None:
    """Fill the table with where each pixel's first tap is."""
    numbers = f.constants("i64", range(GROUP))
    steps = f.broadcast(strip.step, GROUP) * numbers
    with f.loop(0, strip.lines) as down, f.loop(0, strip.across, GROUP) as along:
        place = down.index * s.stride_h * strip.pitch + along.index * strip.step
        first = f.broadcast(f.address(f.at(room, place, "i8")), GROUP)
        at = down.index * strip.across + along.index
        f.store(first + steps, f.at(table, at, "ptr"))


def is_dense(s: Sizes[T]) -> T:
    """Return whether rows of the kernel are runs of the image, which neighbours share."""
    return s.x_stride.equals(s.c) & s.dilation_w.equals(1) & (s.stride_w <= s.kw)


_PARAMETERS = (
    "ptr x, ptr sizes, i64 top, i64 left, i64 count, i64 apart, i64 across, i64 pitch, ptr room"
)


@cache
def copy_lines(isa: Isa, shift: bool) -> Function:
    """Return the function that copies lines as they are, from (top, left), where x points, on."""
    f = Function(isa, f"fewbit_copy_lines_{_name(shift)}", _PARAMETERS)
    x, sizes, top, left, count, apart, _, pitch, room = f.parameters
    s = Sizes.load(f, sizes)
    chunk = isa.vector_bits // 8
    nothing = f.broadcast(f.constant("i8", BIAS if shift else 0), chunk)
    before = f.larger(f.integer(0) - left, 0) * s.c
    after = f.larger(f.smaller((s.w - left) * s.c, pitch), before)
    with f.loop(0, count) as loop:
        y = top + loop.index * apart
        stop = f.select(y.inside(s.h), after, before)
        source = f.at(x, loop.index * apart * s.w * s.c, "i8")
        to = f.at(room, loop.index * pitch, "i8")
        if chunk == MASKED:
            with f.loop(0, pitch, chunk) as along:
                at = along.index
                seen = f.bits(_ones(f, stop - at) ^ _ones(f, before - at), f"<{chunk} x i1>")
                numbers = f.load_part(f.at(source, at, "i8"), seen, "i8")
                f.store(numbers ^ nothing, f.at(to, at, "i8"))
        else:
            with f.loop(0, pitch, chunk) as along:
                f.store(nothing, f.at(to, along.index, "i8"))
            whole = before + (stop - before) // chunk * chunk
            with f.loop(before, whole, chunk) as along:
                numbers = f.load(nothing.type, f.at(source, along.index, "i8"))
                f.store(numbers ^ nothing, f.at(to, along.index, "i8"))
            with f.loop(whole, stop) as along:
                number = f.load("i8", source, along.index)
                f.store(_shift(f, number, shift), to, along.index)
    return f


@cache
def copy_runs(isa: Isa, shift: bool) -> Function:
    """Return the function that copies each pixel's runs, byte by byte."""
    f = Function(isa, f"fewbit_copy_runs_{_name(shift)}", _PARAMETERS)
    x, sizes, top, left, count, apart, across, pitch, room = f.parameters
    s = Sizes.load(f, sizes)
    with f.loop(0, count) as loop, f.loop(0, across) as along, f.loop(0, s.kw) as right:
        y = loop.index * apart
        column = along.index * s.stride_w + right.index * s.dilation_w
        exists = (top + y).inside(s.h) & (left + column).inside(s.w)
        source = f.at(x, (y * s.w + column) * s.x_stride, "i8")
        source = f.select(exists, source, f.zeros())
        place = loop.index * pitch + (along.index * s.kw + right.index) * s.c
        with f.loop(0, s.c) as channels:
            number = f.load("i8", source, channels.index)
            f.store(_shift(f, number, shift), room, place + channels.index)
    return f


def _name(shift: bool) -> str:
    return "u8" if shift else "i8"


def _shift(f: Function, number: Value, shift: bool) -> Value:
    return number ^ f.constant("i8", BIAS) if shift else number


def _ones(f: Function, count: Value) -> Value:
    """Return as many ones, from the lowest bit on: all of them from 64 on, none below 1."""
    some = f.integer(1).shift_left(f.smaller(f.larger(count, 0), MASKED - 1)) - 1
    return f.select(count < MASKED, some, -1)
