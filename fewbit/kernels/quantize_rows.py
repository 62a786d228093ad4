"""Activations quantized by scales of their own: one for each row.

    void fewbit_quantize_rows_*(ptr x, i64 ldx, ptr q, i64 ldq, ptr scale, i64 m, i64 k,
                                i64 thread, i64 threads)

The formula is that of `fewbit.numerics` for the largest magnitude, to the bit. A row is read twice:
for its largest magnitude, as an integer, since the bits of floats without their sign are ordered
as floats are; and to be multiplied and rounded. Adding 1.5 · 2^23 rounds half to even, and leaves
the integer in the lowest byte. A product cannot round to more than the width holds, so nothing is
clamped. With one row for each sample, scales are those of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fewbit.errors import WidthError
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.isa import Isa
from fewbit.kernels.kernel import Kernel
from fewbit.numerics.formulas import EPS

AT_ONCE = 4
"""Vectors whose largest magnitudes are found side by side, to hide the latency."""
_TO_INTEGER = 1.5 * 2.0**23


@dataclass(frozen=True)
class QuantizeRows(Kernel):
    """Floats to bytes of a width from 3 to 8 bits. Below, scales are means, which it has not."""

    bits: int = 8

    def __post_init__(self) -> None:
        if self.bits not in range(3, 9):
            raise WidthError(
                f"no kernel quantizes rows to {self.bits} bits", hint="3 to 8 bits have one"
            )

    @property
    def symbol(self) -> str:
        return f"fewbit_quantize_rows_i{self.bits}"

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr q, i64 ldq, ptr scale, i64 m, i64 k, i64 thread, i64 threads",
            public=True,
        )
        x, ldx, q, ldq, scale, m, k, thread, threads = f.parameters
        one, most = f.number(1.0), f.number(float((1 << self.bits - 1) - 1))
        found = f.array("i32", 1)
        with f.loop(m * thread // threads, m * (thread + 1) // threads) as loop:
            row = f.at(x, loop.index * ldx)
            f.call(largest_magnitude(self.isa), row, k, found)
            multiplier = _divided(f, most, f.load("float", found))
            f.store(_divided(f, one, multiplier), scale, loop.index)
            to = f.at(q, loop.index * ldq, "i8")
            f.call(round_row(self.isa), row, k, multiplier, to)
        return f


@cache
def largest_magnitude(isa: Isa) -> Function:
    """max|x| of a row, and eps at least, into `to`."""
    f = Function(isa, "fewbit_largest_magnitude", "ptr x, i64 k, ptr to")
    x, k, to = f.parameters
    kind = f"<{isa.lanes} x i32>"
    unsigned = f.broadcast(Value(f, "i32", str(0x7FFFFFFF)))
    least = f.broadcast(Value(f, "i32", str(EPS.view("int32"))))

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
    rest = f.load_part(f.at(x, whole), f.first_lanes(k - whole), "i32") & unsigned
    most = larger(rest, loop.results[0])
    f.store(f.processor_call(f"vector.reduce.smax.v{isa.lanes}i32", "i32", most), to)
    return f


@cache
def round_row(isa: Isa) -> Function:
    """A row times the multiplier, rounded half to even, as bytes."""
    f = Function(isa, "fewbit_round_row", "ptr x, i64 k, float multiplier, ptr q")
    x, k, multiplier, q = f.parameters
    factor, magic = f.broadcast(multiplier), f.broadcast(f.number(_TO_INTEGER))

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


def _divided(f: Function, a: Value, b: Value) -> Value:
    return f.set("float", f"fdiv float {a}, {b}")
