"""The mean magnitude of each row, summed in float64: the scale of 1 and 2 bits.

    void fewbit_magnitude_sums(ptr x, i64 ldx, ptr sums, i64 m, i64 k, i64 thread, i64 threads)

`sums` is [m, 64], in float64: the columns of a row are cut into as many blocks, or fewer of 1024
columns, whole ones of which a thread adds up, so that the bits are the same with any number of
threads. A sum has 64 lanes on every processor, halved until one is left, so that processors agree.
It is rounded to float32 once, as `fewbit.numerics` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.largest_magnitudes import PLACES, columns_of
from fewbit.llvm.types import Vector
from fewbit.numerics.formulas import EPS
from fewbit.toolchain.isa import Isa

COLUMNS = 1024
"""Columns of the shortest block."""
LANES = 16
AT_ONCE = 4
"""Vectors of lanes that are added to by turns, to hide the latency."""


@dataclass(frozen=True)
class MagnitudeSums(Kernel):
    """Σ|x| of parts of rows: the first of two calls that quantize long rows."""

    @property
    def symbol(self) -> str:
        return "fewbit_magnitude_sums"

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr sums, i64 m, i64 k, i64 thread, i64 threads",
            public=True,
        )
        x, ldx, sums, m, k, thread, threads = f.parameters
        places, total = f.integer(PLACES), f.array("double", 1)
        first, last = places * thread // threads, places * (thread + 1) // threads
        with f.loop(0, m) as over_rows, f.loop(first, last) as loop:
            row, place = over_rows.index, loop.index
            start, stop = columns_of(f, k, place, places, COLUMNS)
            f.store(f.constant("double", 0.0), total)
            with f.when(start < stop):
                f.call(magnitude_sum(self.isa), f.at(x, row * ldx + start), stop - start, total)
            f.store(f.load("double", total), sums, row * PLACES + place)
        return f


@cache
def magnitude_sum(isa: Isa) -> Function:
    """Return the function that stores Σ|x| of a row."""
    f = Function(isa, "fewbit_magnitude_sum", "ptr x, i64 k, ptr to")
    x, k, to = f.parameters

    def magnitudes(values: Value) -> Value:
        name = f"fabs.v{LANES}f32" if isinstance(values.type, Vector) else "fabs.f32"
        return f.convert("fpext", f.processor_call(name, values.type, values), "double")

    whole, many = k // LANES * LANES, k // (AT_ONCE * LANES) * (AT_ONCE * LANES)
    kind, nothing = f"<{LANES} x float>", f.zero(f"<{LANES} x double>")
    with f.loop(0, many, AT_ONCE * LANES, carried=[nothing] * AT_ONCE) as loop:
        here = f.at(x, loop.index)
        loop.carry(*(v + magnitudes(f.load(kind, here, i)) for i, v in enumerate(loop.carried)))
    a, b, c, d = loop.results
    with f.loop(many, whole, LANES, carried=[(a + b) + (c + d)]) as loop:
        loop.carry(loop.carried[0] + magnitudes(f.load(kind, f.at(x, loop.index))))
    with f.loop(whole, k, carried=[_sum_lanes(f, loop.results[0])]) as tail:
        tail.carry(tail.carried[0] + magnitudes(f.load("float", x, tail.index)))
    f.store(tail.results[0], to)
    return f


def _sum_lanes(f: Function, lanes: Value) -> Value:
    """Return the sum of all lanes, by halving the vector until one is left."""
    count = LANES
    while count > 1:
        count //= 2
        halves: list[Value] = []
        for first in (0, count):
            halves.append(f.shuffle(lanes, range(first, first + count)))
        lanes = halves[0] + halves[1]
    return f.extract(lanes, 0)


@cache
def mean_magnitude(isa: Isa) -> Function:
    """Return the function that stores max(mean|x|, eps) of a row."""
    f = Function(isa, "fewbit_mean_magnitude", "ptr x, i64 k, ptr to")
    x, k, to = f.parameters
    total = f.array("double", 1)
    f.call(magnitude_sum(isa), x, k, total)
    f.store(_mean(f, f.load("double", total), k), to)
    return f


@cache
def mean_of_sums(isa: Isa) -> Function:
    """Return the function that stores max(mean|x|, eps) from the sums of a row's parts."""
    f = Function(isa, "fewbit_mean_of_sums", "ptr sums, i64 k, ptr to")
    sums, k, to = f.parameters
    with f.loop(0, PLACES, carried=[f.constant("double", 0.0)]) as loop:
        loop.carry(loop.carried[0] + f.load("double", sums, loop.index))
    f.store(_mean(f, loop.results[0], k), to)
    return f


def _mean(f: Function, total: Value, k: Value) -> Value:
    count = f.convert("uitofp", k, "double")
    mean = f.convert("fptrunc", total / count, "float")
    least = f.number(float(EPS))
    return f.select(mean > least, mean, least)
