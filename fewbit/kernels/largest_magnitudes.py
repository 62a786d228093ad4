"""The largest magnitude of each row, found by all threads: the first pass of a quantization.

    void fewbit_largest_magnitudes(ptr x, i64 ldx, ptr largest, i64 m, i64 k,
                                   i64 thread, i64 threads)

Threads share the columns, so that one long row, such as an image, keeps them all busy. Each leaves
what it has found in places of its own, of which every row has as many as there may be threads:
`largest` is [m, 64], and the largest of a row is that of its places. The bits of floats without
their sign are ordered as floats are, so magnitudes are compared as integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Kernel
from fewbit.numerics.formulas import EPS
from fewbit.toolchain.isa import Isa

PLACES = 64
"""Places of a row: as many as there may be threads, and whole vectors of every processor."""
SLOT = 16
"""Places of a thread where matmuls leave magnitudes: a cache line."""
AT_ONCE = 4
"""Vectors whose largest magnitudes are found side by side, to hide the latency."""
COLUMNS = 64
"""Columns that one thread takes at once: some cache lines."""


@dataclass(frozen=True)
class LargestMagnitudes(Kernel):
    """max|x| of rows, and eps at least."""

    @property
    def symbol(self) -> str:
        return "fewbit_largest_magnitudes"

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr largest, i64 m, i64 k, i64 thread, i64 threads",
            public=True,
        )
        x, ldx, largest, m, k, thread, threads = f.parameters
        first, last = columns_of(f, k, thread, threads)
        largest_of_row = f.array("i32", 1)
        with f.loop(0, m) as loop:
            row = f.at(x, loop.index * ldx + first)
            f.call(largest_magnitude(self.isa), row, last - first, largest_of_row)
            places = f.at(largest, loop.index * PLACES, "i32")
            with f.loop(thread, PLACES, threads) as over_places:
                f.store(f.load("i32", largest_of_row), places, over_places.index)
        return f


def columns_of(
    f: Function, k: Value, thread: Value, threads: Value, columns: int = COLUMNS
) -> tuple[Value, Value]:
    """Return the columns that a thread takes, of k, so many at once."""
    blocks = f.ceiling(k, columns)
    first = blocks * thread // threads * columns
    last = blocks * (thread + 1) // threads * columns
    return f.smaller(first, k), f.smaller(last, k)


def larger_magnitudes(
    f: Function, most: Value, values: Sequence[Value], mask: Value | None
) -> Value:
    """Return the larger of `most` and of the magnitudes of vectors, lane by lane."""
    unsigned = f.broadcast(f.constant("i32", 0x7FFFFFFF))
    for value in values:
        size = f.bits(value, most.type) & unsigned
        size = size if mask is None else f.select(mask, size, f.zero(most.type))
        most = f.select(size > most, size, most)
    return most


@dataclass(frozen=True)
class ClearPlaces(Kernel):
    """Clears the places in which matmuls leave the largest magnitudes of their results.

    void fewbit_clear_places(ptr found, i64 thread, i64 threads)

    A thread has 16 places, [64, 16] in all: a cache line, that no other thread writes.
    """

    @property
    def symbol(self) -> str:
        return "fewbit_clear_places"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, "ptr found, i64 thread, i64 threads", public=True)
        places, thread, threads = f.parameters
        with f.loop(thread, PLACES, threads) as loop:
            f.store(f.zero(f"<{SLOT} x i32>"), places, loop.index)
        return f


@cache
def largest_magnitude(isa: Isa) -> Function:
    """Return the function that stores max(max|x|, eps) of a row."""
    f = Function(isa, "fewbit_largest_magnitude", "ptr x, i64 k, ptr to")
    x, k, to = f.parameters
    kind = f"<{isa.lanes} x i32>"
    unsigned = f.broadcast(f.constant("i32", 0x7FFFFFFF))
    least = f.broadcast(f.constant("i32", int(EPS.view("int32"))))

    def larger(a: Value, b: Value) -> Value:
        return f.select(a > b, a, b)

    whole = k // isa.lanes * isa.lanes
    blocks = k // (AT_ONCE * isa.lanes) * (AT_ONCE * isa.lanes)
    with f.loop(0, blocks, AT_ONCE * isa.lanes, carried=[least] * AT_ONCE) as loop:
        here = f.at(x, loop.index)
        loop.carry(
            *(larger(f.load(kind, here, i) & unsigned, v) for i, v in enumerate(loop.carried))
        )
    most = loop.results[0]
    for other in loop.results[1:]:
        most = larger(most, other)
    with f.loop(blocks, whole, isa.lanes, carried=[most]) as loop:
        loop.carry(larger(f.load(kind, f.at(x, loop.index)) & unsigned, loop.carried[0]))
    tail = f.load_part(f.at(x, whole), f.first_lanes(k - whole), "i32") & unsigned
    most = larger(tail, loop.results[0])
    f.store(f.processor_call(f"vector.reduce.smax.v{isa.lanes}i32", "i32", most), to)
    return f
