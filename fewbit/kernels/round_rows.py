"""Rows rounded by their largest magnitudes: the second pass of a quantization.

    void fewbit_round_rows_*(ptr x, i64 ldx, ptr largest, ptr q, i64 ldq, ptr scale, i64 m, i64 k,
                             i64 thread, i64 threads)

`largest` is what `largest_magnitudes` has left: the largest of a row is that of its places. Threads
share the columns. Adding 1.5 · 2^23 rounds half to even, and leaves the integer in the lowest byte.
A product cannot round to more than the width holds, so nothing is clamped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.errors import WidthError
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.isa import Isa
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.largest_magnitudes import PLACES, columns_of, largest_magnitude
from fewbit.kernels.steps import TO_INTEGER


def check_width(bits: int) -> None:
    if bits not in range(3, 9):
        raise WidthError(f"no kernel quantizes rows to {bits} bits", hint="3 to 8 bits have one")


@dataclass(frozen=True)
class RoundRows(Kernel):
    """Floats to bytes of a width from 3 to 8 bits, whose largest magnitudes are known."""

    bits: int = 8

    def __post_init__(self) -> None:
        check_width(self.bits)

    @property
    def symbol(self) -> str:
        return f"fewbit_round_rows_i{self.bits}"

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr largest, ptr q, i64 ldq, ptr scale, i64 m, i64 k, i64 thread, "
            "i64 threads",
            public=True,
        )
        x, ldx, largest, q, ldq, scale, m, k, thread, threads = f.parameters
        first, last = columns_of(f, k, thread, threads)
        found = f.array("i32", 1)
        with f.loop(0, m) as loop:
            row = loop.index
            f.call(largest_magnitude(self.isa), f.at(largest, row * PLACES), PLACES, found)
            multiplier, step = factors(f, self.bits, f.load("float", found))
            with f.when(thread.equals(0)):
                f.store(step, scale, row)
            here, to = f.at(x, row * ldx + first), f.at(q, row * ldq + first, "i8")
            f.call(round_row(self.isa), here, last - first, multiplier, to)
        return f


def factors(f: Function, bits: int, largest: Value) -> tuple[Value, Value]:
    """By what a row is multiplied, and its scale, which is one by that."""
    most = f.number(float((1 << bits - 1) - 1))
    multiplier = f.set("float", f"fdiv float {most}, {largest}")
    return multiplier, f.set("float", f"fdiv float {f.number(1.0)}, {multiplier}")


@cache
def round_row(isa: Isa) -> Function:
    """A row times the multiplier, rounded half to even, as bytes."""
    f = Function(isa, "fewbit_round_row", "ptr x, i64 k, float multiplier, ptr q")
    x, k, multiplier, q = f.parameters
    factor, magic = f.broadcast(multiplier), f.broadcast(f.number(TO_INTEGER))

    def rounded(at: Value, mask: Value | None) -> None:
        moved = f.load_part(f.at(x, at), mask) * factor + magic
        bytes_ = f.convert("trunc", f.bits(moved, f"<{isa.lanes} x i32>"), "i8")
        f.store_part(bytes_, f.at(q, at, "i8"), mask)

    whole = k // isa.lanes * isa.lanes
    with f.loop(0, whole, isa.lanes) as loop:
        rounded(loop.index, None)
    with f.when(whole < k):
        rounded(whole, f.first_lanes(k - whole))
    return f
