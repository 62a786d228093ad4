"""The microkernel on bits: a word of each row against a word of each column, 32 numbers at a time.

Each power of two has accumulators of its own until the tile ends, so that a step is nothing but
ands, popcounts and additions. Rows are pointers to records, one for each tap.
"""

from __future__ import annotations

from functools import cache

from fewbit.kernels.bits.planes import TERM, WORD, Pair
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.tile import LINE

PARAMETERS = "ptr table, i64 table_step, i64 taps, i64 words, ptr w, ptr ahead, ptr terms, ptr sums"


@cache
def tile(pair: Pair, rows: int, vectors: int) -> Function:
    """Return the microkernel of `rows` rows times a panel that is `vectors` vectors wide."""
    isa = pair.isa
    f = Function(isa, f"fewbit_tile_{pair.name}_{rows}x{vectors}", PARAMETERS, apart=True)
    table, table_step, taps, words, w, ahead, terms, sums = f.parameters
    kind, cells = f"<{isa.lanes} x i32>", rows * vectors
    plane_step = words * (WORD // 8)
    asks_ahead = rows > 1  # else it takes more than it gives
    starts = [f.zero(kind)] * (cells * pair.places)
    with f.loop(0, taps, carried=[w, ahead, *starts], hot=True) as over_taps:
        here = f.at(table, over_taps.index * table_step, "ptr")
        records = [f.load("ptr", here, r) for r in range(rows)]
        planes = [
            [f.at(record, plane_step * i + TERM, "i8") for i in range(pair.x_bits)]
            for record in records
        ]
        with f.loop(0, words, carried=over_taps.carried, hot=True) as loop:
            here, line, *counts = loop.carried
            if asks_ahead:
                f.prefetch(line)
                line = f.at(line, LINE, "i8")
            columns = [f.load(kind, here, i) for i in range(pair.w_bits * vectors)]
            for r, row in enumerate(planes):
                for i, plane in enumerate(row):
                    word = f.broadcast(f.load("i32", plane, loop.index))
                    for j in range(pair.w_bits):
                        for v in range(vectors):
                            cell = (i + j) * cells + r * vectors + v
                            both = word & columns[j * vectors + v]
                            counts[cell] = counts[cell] + count(f, both)
            following = f.at(here, pair.w_bits * vectors * isa.lanes * WORD // 8, "i8")
            loop.carry(following, line, *counts)
        over_taps.carry(*loop.results)
    counts = over_taps.results[2:]
    column_terms = [f.load(kind, terms, v) for v in range(vectors)]
    for cell in range(cells):
        total = column_terms[cell % vectors]
        for place in range(pair.places):
            total = total + times(f, counts[place * cells + cell], place + pair.lift)
        f.store(total, sums, cell)
    return f


def count(f: Function, words: Value) -> Value:
    """Return the popcount of each lane."""
    return f.processor_call(f"ctpop.v{f.isa.lanes}i32", words.type, words)


def times(f: Function, counts: Value, power: int) -> Value:
    """Return counts times a power of two, by doubling."""
    for _ in range(power):
        counts = counts + counts
    return counts
