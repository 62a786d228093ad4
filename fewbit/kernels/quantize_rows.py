"""Activations quantized by scales of their own: one for each row.

    void fewbit_quantize_rows_*(ptr x, i64 ldx, ptr q, i64 ldq, ptr scale, i64 m, i64 k,
                                i64 thread, i64 threads)

The formula is that of `fewbit.numerics` for the largest magnitude, to the bit. A row is read twice:
for its largest magnitude, and to be multiplied and rounded. Threads share the rows. Where rows are
few and long, `largest_magnitudes` and `round_rows` do the same in two calls, and share columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.largest_magnitudes import largest_magnitude
from fewbit.kernels.round_rows import check_width, factors, round_row


@dataclass(frozen=True)
class QuantizeRows(Kernel):
    """Floats to bytes of a width from 3 to 8 bits. Below, scales are means, which it has not."""

    bits: int = 8

    def __post_init__(self) -> None:
        check_width(self.bits)

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
        found = f.array("i32", 1)
        with f.loop(m * thread // threads, m * (thread + 1) // threads) as loop:
            row = f.at(x, loop.index * ldx)
            f.call(largest_magnitude(self.isa), row, k, found)
            multiplier, step = factors(f, self.bits, f.load("float", found))
            f.store(step, scale, loop.index)
            f.call(round_row(self.isa), row, k, multiplier, f.at(q, loop.index * ldq, "i8"))
        return f
