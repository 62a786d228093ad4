"""The mean magnitude of each row, summed in float64: the scale of 1 and 2 bits.

    void fewbit_magnitude_sums(ptr x, i64 ldx, ptr sums, i64 m, i64 k, i64 thread, i64 threads)

`sums` is [m, 64, 32], in float64: parts of a row, of which a thread adds whole ones, and their
lanes. The order of all additions is that of `fewbit.numerics.mean_magnitude`, whatever the
processor and the number of threads, so that the bits of a scale are the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Kernel
from fewbit.numerics.formulas import EPS
from fewbit.numerics.mean_magnitude import LANES, PART, PARTS
from fewbit.toolchain.isa import Isa


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
            "ptr x, index ldx, ptr sums, index m, index k, index thread, index threads",
            public=True,
        )
        x, ldx, sums, m, k, thread, threads = f.parameters
        part, parts = _parts(f, k)
        first, last = parts * thread // threads, parts * (thread + 1) // threads
        with f.loop(0, m) as over_rows, f.loop(first, last) as loop:
            start = loop.index * part
            length = f.smaller(k - start, part)
            here = f.at(x, over_rows.index * ldx + start)
            to = f.at(sums, (over_rows.index * PARTS + loop.index) * LANES, "double")
            f.call(add_magnitudes(self.isa), here, length, to)
        return f


def _parts(f: Function, k: Value) -> tuple[Value, Value]:
    """Return how long the parts of a row are, and how many."""
    part = f.ceiling(k, PART * PARTS) * PART
    return part, (k + part - 1) // part


@cache
def add_magnitudes(isa: Isa) -> Function:
    """Return the function that stores Σ|x| of a part of a row, in lanes."""
    f = Function(isa, "fewbit_add_magnitudes", "ptr x, index k, ptr to")
    x, k, to = f.parameters
    remainder = f.array("float", LANES)
    kind = f"<{LANES} x float>"

    def add(lanes: Value, values: Value) -> Value:
        magnitudes = f.processor_call(f"fabs.v{LANES}f32", values.type, values)
        return lanes + f.convert("fpext", magnitudes, "double")

    whole = k // LANES * LANES
    with f.loop(0, whole, LANES, carried=[f.zero(f"<{LANES} x double>")]) as loop:
        loop.carry(add(loop.carried[0], f.load(kind, f.at(x, loop.index))))
    f.store(loop.results[0], to)
    with f.when(whole < k):
        f.store(f.zero(kind), remainder)
        with f.loop(whole, k) as tail:
            f.store(f.load("float", x, tail.index), remainder, tail.index - whole)
        f.store(add(f.load(f"<{LANES} x double>", to), f.load(kind, remainder)), to)
    return f


@cache
def mean_magnitude(isa: Isa) -> Function:
    """Return the function that stores max(mean|x|, eps) of a row."""
    f = Function(isa, "fewbit_mean_magnitude", "ptr x, index k, ptr to")
    x, k, to = f.parameters
    part, parts = _parts(f, k)
    sums, kind = f.array("double", LANES), f"<{LANES} x double>"
    with f.loop(0, parts, carried=[f.zero(kind)]) as loop:
        start = loop.index * part
        f.call(add_magnitudes(isa), f.at(x, start), f.smaller(k - start, part), sums)
        loop.carry(loop.carried[0] + f.load(kind, sums))
    f.store(_mean(f, loop.results[0], k), to)
    return f


@cache
def mean_of_sums(isa: Isa) -> Function:
    """Return the function that stores max(mean|x|, eps) from the sums of a row's parts."""
    f = Function(isa, "fewbit_mean_of_sums", "ptr sums, index k, ptr to")
    sums, k, to = f.parameters
    kind = f"<{LANES} x double>"
    with f.loop(0, _parts(f, k)[1], carried=[f.zero(kind)]) as loop:
        loop.carry(loop.carried[0] + f.load(kind, f.at(sums, loop.index * LANES, "double")))
    f.store(_mean(f, loop.results[0], k), to)
    return f


def _mean(f: Function, lanes: Value, k: Value) -> Value:
    mean = f.convert("fptrunc", _halve(f, lanes) / f.convert("uitofp", k, "double"), "float")
    least = f.number(float(EPS))
    return f.select(mean > least, mean, least)


def _halve(f: Function, lanes: Value) -> Value:
    """Return the sum of all lanes, by halving the vector until one is left."""
    count = LANES
    while count > 1:
        count //= 2
        low, high = (f.shuffle(lanes, range(first, first + count)) for first in (0, count))
        lanes = low + high
    return f.extract(lanes, 0)
