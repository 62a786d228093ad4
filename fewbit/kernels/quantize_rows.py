"""Activations quantized by scales of their own: one for each row.

    void fewbit_quantize_rows_*(ptr x, i64 ldx, ptr q, i64 ldq, ptr scale, i64 m, i64 k,
                                i64 thread, i64 threads)

The formula is that of `fewbit.numerics`, to the bit. A row is read twice: for its largest
magnitude, or mean one below 3 bits, and to be rounded. Threads share the rows. Where rows are few
and long, `largest_magnitudes` or `mean_magnitudes`, and `round_rows`, do the same in two calls, and
share columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.largest_magnitudes import largest_magnitude
from fewbit.kernels.mean_magnitudes import mean_magnitude
from fewbit.kernels.round_rows import factors, round_row, width_name
from fewbit.numerics.widths import Width


@dataclass(frozen=True)
class QuantizeRows(Kernel):
    """Floats to bytes of a width."""

    bits: float = 8
    """1 to 8; ternary is 1.58."""

    def __post_init__(self) -> None:
        Width.of(self.bits)

    @property
    def symbol(self) -> str:
        return f"fewbit_quantize_rows_{width_name(self.bits)}"

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr q, i64 ldq, ptr scale, i64 m, i64 k, i64 thread, i64 threads",
            public=True,
        )
        x, ldx, q, ldq, scale, m, k, thread, threads = f.parameters
        width, largest = Width.of(self.bits), f.array("i32", 1)
        magnitude = mean_magnitude if width.bits <= 2 else largest_magnitude
        with f.loop(m * thread // threads, m * (thread + 1) // threads) as loop:
            row = f.at(x, loop.index * ldx)
            f.call(magnitude(self.isa), row, k, largest)
            factor, step = factors(f, width, f.load("float", largest))
            f.store(step, scale, loop.index)
            f.call(round_row(self.isa, width), row, k, factor, f.at(q, loop.index * ldq, "i8"))
        return f
