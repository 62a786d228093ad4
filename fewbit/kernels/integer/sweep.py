"""The macrokernel on integers: a few tiles, and then the epilogue of their sums.

A sum is taken in one go wherever it can be. One that is cut has few rows and one panel at a time,
whose sums wait on the stack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.dot import offsets
from fewbit.kernels.integer.few_bits import SWEEP, sweep_few_bits
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.integer.group_scales import Groups
from fewbit.kernels.integer.output import (
    SCALED,
    Offset,
    Output,
    advance,
    finish,
    pointers,
    spread_scales,
)
from fewbit.kernels.integer.tile import TALLEST, tile
from fewbit.kernels.sweep import (
    Heights,
    Weights,
    highest_tile,
    panels,
    row_of,
    shapes,
    tiles_between,
)
from fewbit.toolchain.isa import Isa

WAITING = 10 * TALLEST
"""Vectors of sums that wait until outputs are made of all of them."""
OFFSETS = 4096
"""Offsets of a block of rows where each group has its own."""


@dataclass(frozen=True)
class Rows:
    """What a block of rows has on the stack: offsets and scales of each, and sums."""

    fields: Fields
    offsets: Value
    scales: Value
    sums: Value

    @staticmethod
    def make(f: Function, fields: Fields, most: int, groups: Groups | None = None) -> Rows:
        """Allocate room for `most` rows, with sums of a few tiles, or of all rows below 8 bits."""
        whole = fields.bits < 8 or groups is not None
        return Rows(
            fields,
            f.array("i32", OFFSETS if groups else most),
            f.array("float", OFFSETS if groups and groups.blocks else most),
            f.array("i32", most * f.isa.panel_width if whole else WAITING * f.isa.lanes),
        )

    def begin(
        self, f: Function, output: Output, x_scale: Value, together: Value, row: Value, rows: Value
    ) -> None:
        """Take the block of rows from `row` on."""
        if output in SCALED:
            f.call(spread_scales(f.isa), x_scale, together, row, rows, self.scales)

    def take_blocks(
        self, f: Function, x_scale: Value, row: Value, rows: Value, count: Value
    ) -> None:
        """Take the scales of a block's rows, [rows, count], in the order [count, rows]."""
        with f.loop(0, rows) as over_rows:
            given = f.at(x_scale, (row + over_rows.index) * count)
            with f.loop(0, count) as loop:
                place = loop.index * rows + over_rows.index
                f.store(f.load("float", given, loop.index), self.scales, place)

    def clear(self, f: Function, rows: Value) -> None:
        with f.loop(0, rows) as loop:
            f.store(f.constant("i32", 0), self.offsets, loop.index)

    def add(
        self,
        f: Function,
        table: Value,
        table_step: Value | int,
        tap_step: Value | int,
        rows: Value,
        taps: Value,
        depth: Value,
    ) -> None:
        """Add a part of K to the rows' offsets."""
        if self.fields.bias:
            summed = offsets(f.isa, self.fields.bias)
            f.call(summed, table, table_step, 0, tap_step, rows, taps, depth, self.offsets)

    def add_groups(
        self,
        f: Function,
        table: Value,
        rows: Value,
        count: Value,
        depth: Value,
        groups: Groups,
    ) -> None:
        """Compute the offsets of each group, [count, rows]; where weights are shifted, -Σ x."""
        bias = 1 if groups.shifted else self.fields.bias
        if bias:
            summed = offsets(f.isa, bias)
            with f.loop(0, count) as loop:
                to = f.at(self.offsets, loop.index * rows, "i32")
                f.call(summed, table, 0, loop.index * depth, 0, rows, 1, depth, to)


def sweep_of(
    fields: Fields,
    output: Output,
    groups: Groups | None = None,
    *,
    shifted: bool = False,
    far: bool = False,
) -> Function:
    """Return the macrokernel for these weights; `shifted` rows have offsets of columns."""
    if fields.bits == 8 and groups is None:
        offset = "columns" if shifted else "rows" if fields.bias else "none"
        return sweep(fields.isa, output, fields.unsigned, offset, far)
    return sweep_few_bits(fields.isa, output, fields.bits, groups, far)


@cache
def sweep(isa: Isa, output: Output, unsigned: bool, offset: Offset, far: bool) -> Function:
    """Return the macrokernel: a block of rows, by their table, times panels `first` up to `last`.

    The block is the steps `k_first` and on of a sum of `k_total`; it `begins` the sum, `ends` it,
    or both.
    """
    fields = Fields(isa, unsigned=unsigned)
    f = Function(
        isa,
        f"fewbit_sweep_{fields.name}_{output}_{offset}{'_far' if far else ''}",
        SWEEP.format(pointers(output)),
    )
    table, table_step, tap_step, rows, taps, depth, w, *given = f.parameters
    k_first, k_total, begins, ends, *given = given
    offsets, scales, sums, w_scale, bias, add, *outputs, y_step, n, first, last, lo, hi = given
    steps = taps * f.ceiling(depth, isa.step)
    weights = Weights(w, k_first, k_total, steps, isa.step)
    with panels(f, n, first, last, weights) as panel:
        highest = highest_tile(f, panel.vectors, TALLEST)
        tiles = Heights.of(f, rows, highest)
        together = f.larger(f.integer(WAITING) // (highest * panel.vectors), 1)
        with f.loop(0, tiles.tiles, together) as bands:
            stop = f.smaller(bands.index + together, tiles.tiles)
            band_row = tiles.row(f, bands.index)
            band_rows = tiles.row(f, stop) - band_row
            with tiles_between(f, tiles, bands.index, stop) as (number, row, height):
                p = panel.place(f, number, row, height)
                here = f.at(sums, (row - band_row) * p.width)
                f.switch(
                    p.shape,
                    [
                        (n, tile(isa, r, v, unsigned=unsigned, far=far and r == 1))
                        for n, r, v in shapes(isa, TALLEST)
                    ],
                    *(f.at(table, row, "ptr"), table_step, f.integer(0), tap_step, taps, depth),
                    *(p.panel, p.ahead, f.select(begins.differs(0), f.zeros(), here), here),
                )
            to = band_row * y_step + panel.column
            with f.when(ends.differs(0)):
                f.call(
                    finish(isa, output, offset=offset),
                    *(sums, band_rows, panel.width),
                    f.at(offsets, panel.column if offset == "columns" else band_row),
                    f.at(scales, band_row),
                    f.at(w_scale, panel.column),
                    row_of(f, bias, panel.column),
                    row_of(f, add, to),
                    *advance(f, output, outputs, to),
                    *(y_step, panel.columns, lo, hi),
                )
    return f
