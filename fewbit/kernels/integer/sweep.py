"""From tiles to matrices, for integers: each tile is followed by what makes outputs of its sums.

A sum is taken in one go wherever it can be. One that is cut has few rows and one panel at a time,
whose sums wait on the stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.dot import offsets
from fewbit.kernels.integer.output import ELEMENT, Output, finish, spread_scales
from fewbit.kernels.integer.tile import TALLEST, tile
from fewbit.kernels.isa import Isa
from fewbit.kernels.sweep import BLOCK_ROWS, Weights, places, row_of, shapes


@dataclass(frozen=True)
class Rows:
    """What a block of rows has on the stack: offsets and scales of each, and a tile's sums."""

    offsets: Value
    scales: Value
    sums: Value

    @staticmethod
    def make(f: Function) -> Rows:
        cells = TALLEST * f.isa.panel_width
        return Rows(f.array("i32", BLOCK_ROWS), f.array("float", BLOCK_ROWS), f.array("i32", cells))

    def begin(
        self, f: Function, output: Output, x_scale: Value, together: Value, row: Value, rows: Value
    ) -> None:
        """Take the block of rows from `row` on."""
        if output == "f32":
            f.call(spread_scales(f.isa), x_scale, together, row, rows, self.scales)

    def clear(self, f: Function, rows: Value) -> None:
        if f.isa.dot == "vnni":
            with f.loop(0, rows) as loop:
                f.store(Value(f, "i32", "0"), self.offsets, loop.index)

    def add(self, f: Function, table: Value, rows: Value, taps: Value, depth: Value) -> None:
        """Take a part of the sums of these rows."""
        if f.isa.dot == "vnni":
            f.call(offsets(f.isa), table, rows, taps, depth, self.offsets)


@cache
def sweep(isa: Isa, output: Output) -> Function:
    """A block of rows, given by their table, times the panels `first` up to `last`.

    The block is the steps `k_first` and on of a sum of `k_total`; it `begins` the sum, `ends` it,
    or both.
    """
    f = Function(
        isa,
        f"fewbit_sweep_i8_{output}",
        "ptr table, i64 rows, i64 taps, i64 depth, ptr w, i64 k_first, i64 k_total, i64 begins, "
        "i64 ends, ptr offsets, ptr scales, ptr sums, ptr w_scale, ptr bias, ptr add, ptr y, "
        "i64 y_step, i64 columns, i64 first, i64 last, float lo, float hi",
    )
    table, rows, taps, depth, w, k_first, k_total, begins, ends, *given = f.parameters
    offsets, scales, sums, w_scale, bias, add, y, y_step, n, first, last, lo, hi = given
    steps = taps * f.ceiling(depth, isa.step)
    waits = f.select((begins & ends).equals(0), 1, 0)
    weights = Weights(w, k_first, k_total, steps, isa.step)
    with places(f, rows, n, first, last, weights, TALLEST) as p:
        here = f.at(sums, p.row * p.width * waits)
        f.switch(
            p.shape,
            [(number, tile(isa, r, v)) for number, r, v in shapes(isa, TALLEST)],
            f.at(table, p.row, "ptr"),
            rows,
            taps,
            depth,
            p.panel,
            p.ahead,
            f.select(begins.differs(0), f.zeros(), here),
            here,
        )
        to = p.row * y_step + p.column
        with f.when(ends.differs(0)):
            f.call(
                finish(isa, output),
                here,
                p.height,
                p.width,
                f.at(offsets, p.row),
                f.at(scales, p.row),
                f.at(w_scale, p.column),
                row_of(f, bias, p.column),
                row_of(f, add, to),
                f.at(y, to, ELEMENT[output]),
                y_step,
                p.columns,
                lo,
                hi,
            )
    return f
