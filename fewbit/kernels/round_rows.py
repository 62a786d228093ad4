"""Rows rounded by their largest or mean magnitudes: the second pass of a quantization.

    void fewbit_round_rows_*(ptr x, i64 ldx, ptr found, ptr q, i64 ldq, ptr scale, i64 m, i64 k,
                             i64 thread, i64 threads)

`found` is what `largest_magnitudes` has left, or below 3 bits `mean_magnitudes`: partial results
of each row. Threads share the columns. Adding 1.5 · 2^23 rounds half to even, and leaves
the integer in the lowest byte. A product cannot round to more than the width holds, so nothing is
clamped. Below 3 bits there are few integers, and numbers are compared with where they change: one
bit is the sign; x / s rounds to more than 0 above s / 2, which is exact, and to -2 from about
-1.5 s on, where divisions by s say which float is the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.largest_magnitudes import PLACES, columns_of, largest_magnitude
from fewbit.kernels.mean_magnitudes import mean_of_sums
from fewbit.kernels.steps import TO_INTEGER
from fewbit.numerics.mean_magnitude import LANES, PARTS
from fewbit.numerics.widths import Width
from fewbit.toolchain.isa import Isa


def width_name(bits: float) -> str:
    """Return a width as the names of functions have it."""
    width = Width.of(bits)
    return "ternary" if width.is_ternary else f"i{width.bits}"


@dataclass(frozen=True)
class RoundRows(Kernel):
    """Floats to bytes of a width, of rows whose magnitudes are known."""

    bits: float = 8
    """1 to 8; ternary is 1.58."""
    places: int = PLACES
    """Parts of a row; matmuls leave more of them than `largest_magnitudes`."""

    def __post_init__(self) -> None:
        Width.of(self.bits)

    @property
    def symbol(self) -> str:
        name = f"fewbit_round_rows_{width_name(self.bits)}"
        return name if self.places == PLACES else f"{name}_{self.places}"

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr found, ptr q, i64 ldq, ptr scale, i64 m, i64 k, i64 thread, "
            "i64 threads",
            public=True,
        )
        x, ldx, parts, q, ldq, scale, m, k, thread, threads = f.parameters
        first, last = columns_of(f, k, thread, threads)
        width, magnitude = Width.of(self.bits), f.array("i32", 1)
        with f.loop(0, m) as loop:
            row = loop.index
            if width.bits <= 2:
                sums = f.at(parts, row * (PARTS * LANES), "double")
                f.call(mean_of_sums(self.isa), sums, k, magnitude)
            else:
                places = f.at(parts, row * self.places)
                f.call(largest_magnitude(self.isa), places, self.places, magnitude)
            factor, step = factors(f, width, f.load("float", magnitude))
            with f.when(thread.equals(0)):
                f.store(step, scale, row)
            here, to = f.at(x, row * ldx + first), f.at(q, row * ldq + first, "i8")
            f.call(round_row(self.isa, width), here, last - first, factor, to)
        return f


def factors(f: Function, width: Width, magnitude: Value) -> tuple[Value, Value]:
    """Return what a row is rounded by, and its scale.

    Rows are multiplied, and the scale is one by that; below 3 bits they are divided by it.
    """
    if width.bits <= 2:
        return magnitude, magnitude
    most = f.number(float(width.qmax))
    multiplier = most / magnitude
    return multiplier, f.number(1.0) / multiplier


def _changes(f: Function, width: Width, scale: Value) -> list[tuple[str, Value]]:
    """Return where each integer but the least begins, and how a number is compared with that."""
    if width.is_binary:
        return [("oge", f.number(0.0))]
    half = scale * f.number(0.5)
    changes = [("oge", f.number(0.0) - half), ("ogt", half)]
    if width.is_ternary:
        return changes
    rounded = f.bits(scale * f.number(1.5), "i32")
    first = f.bits(rounded + 1, "float")
    for away in (0, -1):
        candidate = f.bits(rounded + away, "float")
        quotient = candidate / scale
        reaches = quotient >= 1.5
        first = f.select(reaches, candidate, first)
    return [("ogt", f.number(0.0) - first), *changes]


@cache
def round_row(isa: Isa, width: Width) -> Function:
    """Return the function that rounds a row by its factor, half to even, to bytes."""
    kind = width_name(width.precision) if width.bits <= 2 else "many"
    f = Function(isa, f"fewbit_round_row_{kind}", "ptr x, i64 k, float factor, ptr q")
    x, k, factor, q = f.parameters
    by, magic = f.broadcast(factor), f.broadcast(f.number(TO_INTEGER))
    changes = [] if width.bits > 2 else _changes(f, width, factor)
    least, *above = (f.broadcast(f.constant("i8", u)) for u in range(width.qmin, 2))

    def bytes_of(values: Value) -> Value:
        if width.bits > 2:
            shifted = values * by + magic
            return f.convert("trunc", f.bits(shifted, f"<{isa.lanes} x i32>"), "i8")
        integers = least
        for (how, change), integer in zip(changes, above[-len(changes) :], strict=True):
            reaches = values.compare(how, f.broadcast(change))
            integers = f.select(reaches, integer, integers)
        return integers

    def round_at(at: Value, mask: Value | None) -> None:
        f.store_part(bytes_of(f.load_part(f.at(x, at), mask)), f.at(q, at, "i8"), mask)

    whole = k // isa.lanes * isa.lanes
    with f.loop(0, whole, isa.lanes) as loop:
        round_at(loop.index, None)
    with f.when(whole < k):
        round_at(whole, f.first_lanes(k - whole))
    return f
