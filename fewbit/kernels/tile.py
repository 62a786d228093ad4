"""The microkernel: a tile of a few rows times one panel of weights, its accumulators in registers.

A row of A is a pointer, so a tile serves matrices and images alike. `table` holds, for each tap
of a convolution (a matrix has one), a pointer for each row; a tap that is outside the image
points to zeros. For every step of the depth, the row's number is broadcast and multiplied with a
row of the panel:

    for tap in taps:
        row = table[tap]
        for i in range(depth):
            for r, v: sum[r][v] += row[r][i] * w[v]        <- `dot`
            w += width of the panel

Accumulators start from bias + add and are clamped between lo and hi. Weights of a panel may be
stored narrower, and are widened when they are loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.stored import NAMES, Stored, element_of, load_widened
from fewbit.toolchain.isa import Isa

LINE = 64
"""Bytes of a cache line: a tile prefetches one of the next panel at each step."""

Sums = list[list[Value]]


def dot(
    f: Function, rows: Sequence[Value], w: Value, i: Value, sums: Sums, stored: Stored = "f32"
) -> Sums:
    """Return all accumulators after one step of K, a rank-1 update: this is the inner loop."""
    weights = [load_widened(f, stored, w, v) for v in range(len(sums[0]))]
    done: Sums = []
    for row, totals in zip(rows, sums, strict=True):
        x = f.broadcast(f.load("float", row, i))
        done.append([f.multiply_add(x, w, t) for w, t in zip(weights, totals, strict=True)])
    return done


@cache
def tile(isa: Isa, rows: int, vectors: int, stored: Stored = "f32") -> Function:
    """Return the microkernel of `rows` rows times a panel that is `vectors` vectors wide."""
    f = Function(
        isa,
        f"fewbit_tile_{NAMES[stored]}_{rows}x{vectors}",
        "ptr table, i64 table_step, i64 taps, i64 depth, ptr w, ptr ahead, ptr bias, "
        "ptr add, i64 add_step, ptr c, i64 c_step, i64 columns, float lo, float hi",
        apart=True,
    )
    table, table_step, taps, depth, w, ahead, bias, add, add_step, c, c_step, columns, lo, hi = (
        f.parameters
    )
    width = vectors * isa.lanes
    masks = [None] * (vectors - 1) + [f.first_lanes(columns - (width - isa.lanes))]

    def vectors_of(row: Value) -> list[Value]:
        return [f.load_part(f.at(row, v * isa.lanes), masks[v]) for v in range(vectors)]

    biases = vectors_of(bias)
    starts = [
        start + offset
        for r in range(rows)
        for start, offset in zip(vectors_of(f.at(add, add_step * r)), biases, strict=True)
    ]
    with f.loop(0, taps, carried=[w, ahead, *starts]) as outer:
        here = f.at(table, outer.index * table_step, "ptr")
        pointers = [f.load("ptr", here, r) for r in range(rows)]
        with f.loop(0, depth, carried=outer.carried, hot=True) as inner:
            step_w, line, *sums = inner.carried
            next_line = line
            if rows > 1 and vectors > isa.tile_vectors // 2:  # else it takes more than it gives
                f.prefetch(line)
                next_line = f.at(line, LINE // 4)
            done = dot(f, pointers, step_w, inner.index, grid(sums, vectors), stored)
            following = f.at(step_w, width, element_of(f, stored))
            inner.carry(following, next_line, *(sum_ for row in done for sum_ in row))
        outer.carry(*inner.results)

    low, high = f.broadcast(lo), f.broadcast(hi)
    for r, row in enumerate(grid(outer.results[2:], vectors)):
        to = f.at(c, c_step * r)
        for v, value in enumerate(row):
            f.store_part(f.clamp(value, low, high), f.at(to, v * isa.lanes), masks[v])
    return f


def grid(values: list[Value], vectors: int) -> Sums:
    return [values[i : i + vectors] for i in range(0, len(values), vectors)]
