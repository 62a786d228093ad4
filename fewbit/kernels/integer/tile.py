"""The tile of integers: as the one of floats, with sums of 32 bits.

Sums go to a small place on the stack, from which `finish` makes outputs; a sum that is cut goes on
from there. A row's last step ends where the row does: it reads some numbers once more, for which
the panel holds zeros.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.emit import Function
from fewbit.kernels.integer.dot import dot
from fewbit.kernels.isa import Isa
from fewbit.kernels.tile import LINE, grid

TALLEST = 10
"""Rows of a tile, at most: with more, pointers of rows are not in registers."""


@cache
def tile(isa: Isa, rows: int, vectors: int) -> Function:
    """`rows` rows times a panel that is `vectors` vectors wide; a tap is a step deep at least."""
    f = Function(
        isa,
        f"fewbit_tile_i8_{rows}x{vectors}",
        "ptr table, i64 table_step, i64 taps, i64 depth, ptr w, ptr ahead, ptr start, ptr sums",
    )
    table, table_step, taps, depth, w, ahead, start, sums = f.parameters
    width, step = vectors * isa.lanes, isa.step
    last = depth - step
    starts = [f.load(f"<{isa.lanes} x i32>", start, i) for i in range(rows * vectors)]
    with f.loop(0, taps, carried=[w, ahead, *starts]) as outer:
        here = f.at(table, outer.index * table_step, "ptr")
        pointers = [f.load("ptr", here, r) for r in range(rows)]
        with f.loop(0, depth, step, carried=outer.carried, hot=True) as inner:
            step_w, line, *totals = inner.carried
            next_line = line
            if rows > 1 and vectors > isa.tile_vectors // 2:  # else it takes more than it gives
                f.prefetch(line)
                next_line = f.at(line, LINE, "i8")
            at = f.smaller(inner.index, last) if step > 1 else inner.index
            done = dot(f, pointers, step_w, at, grid(totals, vectors))
            following = f.at(step_w, width * step, "i8")
            inner.carry(following, next_line, *(sum_ for row in done for sum_ in row))
        outer.carry(*inner.results)
    for i, total in enumerate(outer.results[2:]):
        f.store(total, sums, i)
    return f
