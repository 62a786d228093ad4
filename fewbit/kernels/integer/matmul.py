"""Matrix of bytes times packed weights: linear layers.

    void fewbit_matmul_i8_*(ptr x, i64 ldx, ptr w_packed, ptr x_scale, i64 rows_per_scale,
                            ptr w_scale, ptr bias, ptr add, ptr y, i64 ldy, i64 m, i64 n, i64 k,
                            float lo, float hi, i64 thread, i64 threads)

`output.py` says what y is.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import Function
from fewbit.kernels.integer.output import ELEMENT, Output
from fewbit.kernels.integer.pack import pack_taps, unpack_taps, widen
from fewbit.kernels.integer.sweep import Rows, sweep
from fewbit.kernels.kernel import Bytes, Kernel
from fewbit.kernels.sweep import BLOCK_ROWS, row_of, share


@dataclass(frozen=True)
class IntegerMatmul(Kernel):
    """A product of bytes with a weight in panels."""

    output: Output = "f32"

    @property
    def symbol(self) -> str:
        return f"fewbit_matmul_i8_{self.output}"

    def pack(self, weight: Bytes) -> Bytes:
        """A layer's weight, [n, k], in panels."""
        return pack_taps(weight.T[None], self.isa)

    def unpack(self, packed: Bytes, n: int, k: int) -> Bytes:
        return unpack_taps(packed, 1, k, n, self.isa)[0].T

    def function(self) -> Function:
        f = Function(
            self.isa,
            self.symbol,
            "ptr x, i64 ldx, ptr w_packed, ptr x_scale, i64 rows_per_scale, ptr w_scale, ptr bias, "
            "ptr add, ptr y, i64 ldy, i64 m, i64 n, i64 k, float lo, float hi, i64 thread, "
            "i64 threads",
            public=True,
        )
        x, ldx, w, x_scale, together, w_scale, bias, add, y, *sizes = f.parameters
        ldy, m, n, k, lo, hi, thread, threads = sizes
        row_first, row_last, first, last = share(f, m, n, thread, threads)
        step = self.isa.step
        here = Rows.make(f)
        table = f.array("ptr", BLOCK_ROWS)
        room = f.array("i8", BLOCK_ROWS * step)
        one = f.integer(1)
        taps, depth = f.smaller(k, 1), f.larger(k, step)
        with f.loop(row_first, row_last, BLOCK_ROWS) as over_rows:
            row = over_rows.index
            rows = f.smaller(row_last - row, BLOCK_ROWS)
            with f.loop(0, rows) as loop:
                f.store(f.at(x, (row + loop.index) * ldx, "i8"), table, loop.index)
            with f.when(k < step):
                f.call(widen(self.isa), table, rows, k, room)
            here.begin(f, self.output, x_scale, together, row, rows)
            here.clear(f, rows)
            here.add(f, table, rows, taps, depth)
            f.call(
                sweep(self.isa, self.output),
                table,
                rows,
                taps,
                depth,
                w,
                0,
                f.ceiling(k, step),
                one,
                one,
                here.offsets,
                here.scales,
                here.sums,
                w_scale,
                bias,
                row_of(f, add, row * ldy),
                f.at(y, row * ldy, ELEMENT[self.output]),
                ldy,
                n,
                first,
                last,
                lo,
                hi,
            )
        return f
