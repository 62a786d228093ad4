"""The macrokernel on bits: a block of rows, given by their table of records, over panels.

A tap outside the image is a record of zeros, which stands for the lowest number and not for 0. Its
bits count for nothing, so all that is wrong with it is the column's term, which has its part for
all taps. Where a block has such taps, their parts are counted again, and given back.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.bits.planes import WORD, Pair
from fewbit.kernels.bits.tile import count, tile, times
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.output import SCALED, Output, advance, finish, pointers, spread_scales
from fewbit.kernels.sweep import BLOCK_ROWS, Weights, places, row_of, shapes
from fewbit.toolchain.isa import Isa

MOST_TAPS = 64


@cache
def sweep(pair: Pair, output: Output) -> Function:
    """Return the macrokernel: a table's rows of `words` words times panels `first` up to `last`."""
    isa = pair.isa
    f = Function(
        isa,
        f"fewbit_sweep_{pair.name}_{output}",
        "ptr table, i64 row, i64 rows, i64 taps, i64 words, ptr w, ptr x_scale, "
        f"i64 rows_per_scale, ptr w_scale, ptr bias, ptr add, {pointers(output)}, i64 y_step, "
        "i64 columns, i64 first, i64 last, float lo, float hi",
    )
    table, row, rows, taps, words, w, x_scale, together, w_scale, bias, *more = f.parameters
    add, *outputs, y_step, n, first, last, lo, hi = more
    sums = f.array("i32", pair.tallest * isa.panel_width)
    parts = f.array("i32", MOST_TAPS * isa.panel_width)
    offsets, scales = f.array("i32", BLOCK_ROWS), f.array("float", BLOCK_ROWS)
    missing = f.array("i64", 1)
    f.call(row_terms(isa), table, rows, taps, offsets, missing)
    some_missing = f.load("i64", missing).differs(0)
    if output in SCALED:
        f.call(spread_scales(isa), x_scale, together, row, rows, scales)
    cell = pair.w_bits * WORD // 8
    steps = taps * words
    weights = Weights(w, f.integer(0), steps, steps, cell)
    padded = f.ceiling(n, isa.lanes) * isa.lanes
    terms = f.at(w, padded * steps, f"[{cell} x i8]")
    with places(f, rows, n, first, last, weights, pair.tallest) as p:
        here = f.at(table, p.row, "ptr")
        f.switch(
            p.shape,
            [(number, tile(pair, r, v)) for number, r, v in shapes(isa, pair.tallest)],
            here,
            rows,
            taps,
            words,
            p.panel,
            p.ahead,
            f.at(terms, p.column, "i32"),
            sums,
        )
        with f.when(some_missing):
            with f.when(p.row.equals(0)):
                f.call(tap_parts(pair), p.panel, taps, words, p.width, parts)
            f.call(give_back(isa), here, rows, p.height, taps, parts, p.width, sums)
        to = p.row * y_step + p.column
        f.call(
            finish(isa, output),
            sums,
            p.height,
            p.width,
            f.at(offsets, p.row),
            f.at(scales, p.row),
            f.at(w_scale, p.column),
            row_of(f, bias, p.column),
            row_of(f, add, to),
            *advance(f, output, outputs, to),
            y_step,
            p.columns,
            lo,
            hi,
        )
    return f


@cache
def row_terms(isa: Isa) -> Function:
    """Return the function that sums rows' terms over taps, and notes taps outside the image."""
    f = Function(isa, "fewbit_row_terms", "ptr table, i64 rows, i64 taps, ptr terms, ptr missing")
    table, rows, taps, terms, missing = f.parameters
    f.store(f.integer(0), missing)
    with f.loop(0, rows) as loop:
        with f.loop(0, taps, carried=[f.constant("i32", 0)]) as over_taps:
            record = f.load("ptr", table, over_taps.index * rows + loop.index)
            over_taps.carry(over_taps.carried[0] + f.load("i32", record))
            with f.when(_is_missing(f, record)):
                f.store(f.integer(1), missing)
        f.store(over_taps.results[0], terms, loop.index)
    return f


@cache
def tap_parts(pair: Pair) -> Function:
    """Return the function for the part of each tap in its columns' terms, with the sign changed."""
    isa = pair.isa
    f = Function(
        isa,
        f"fewbit_tap_parts_{pair.name}",
        "ptr panel, i64 taps, i64 words, i64 width, ptr parts",
    )
    panel, taps, words, width, parts = f.parameters
    kind = f"<{isa.lanes} x i32>"
    bias = f.broadcast(f.constant("i32", pair.x.bias))
    with f.loop(0, taps) as over_taps, f.loop(0, width, isa.lanes) as across:
        tap = over_taps.index * words
        with f.loop(0, words, carried=[f.zero(kind)]) as loop:
            (total,) = loop.carried
            step = (tap + loop.index) * pair.w_bits
            for j in range(pair.w_bits):
                here = f.at(panel, (step + j) * width + across.index, "i32")
                total = total + times(f, count(f, f.load(kind, here)), j + pair.w.lift)
            loop.carry(total)
        to = f.at(parts, over_taps.index * width + across.index, "i32")
        f.store(loop.results[0] * bias, to)
    return f


@cache
def give_back(isa: Isa) -> Function:
    """Return the function that adds, to a tile's sums, the parts of taps outside the image."""
    f = Function(
        isa,
        "fewbit_give_back",
        "ptr table, i64 table_step, i64 height, i64 taps, ptr parts, i64 width, ptr sums",
    )
    table, table_step, height, taps, parts, width, sums = f.parameters
    kind = f"<{isa.lanes} x i32>"
    with f.loop(0, height) as loop, f.loop(0, taps) as over_taps:
        record = f.load("ptr", table, over_taps.index * table_step + loop.index)
        with f.when(_is_missing(f, record)), f.loop(0, width, isa.lanes) as across:
            part = f.at(parts, over_taps.index * width + across.index, "i32")
            here = f.at(sums, loop.index * width + across.index, "i32")
            f.store(f.load(kind, here) + f.load(kind, part), here)
    return f


def _is_missing(f: Function, record: Value) -> Value:
    return f.address(record).equals(f.address(f.zeros()))
