"""Matmul of few-bit numbers by popcount: linear layers of 1 and 2 bits.

    void fewbit_matmul_i1w1_*(the arguments of fewbit_matmul_i8_*)

Activations are bytes, as everywhere; a block of rows is packed into bits on the stack first, which
takes a small part of the time even if there is a single panel.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import UnsupportedError
from fewbit.kernels.bits.kernel import ROOM, BitKernel
from fewbit.kernels.bits.planes import (
    WORD,
    pack_planes,
    pack_records,
    record_bytes,
    unpack_planes,
)
from fewbit.kernels.bits.sweep import sweep
from fewbit.kernels.emit import Function
from fewbit.kernels.integer.matmul import parameters
from fewbit.kernels.integer.output import advance
from fewbit.kernels.kernel import Bytes
from fewbit.kernels.sweep import BLOCK_ROWS, row_of, share


@dataclass(frozen=True)
class BitMatmul(BitKernel):
    """A matmul of numbers of `x_bits`, in bytes, with a weight of `w_bits` in panels of bits."""

    @property
    def symbol(self) -> str:
        return f"fewbit_matmul_{self.pair.name}_{self.output}"

    def fits(self, k: int) -> bool:
        """Return whether there is room for rows of so many numbers."""
        return k > 0 and self.pair.record(k) <= ROOM

    def pack(self, weight: Bytes) -> Bytes:
        """Return a layer's weight, [n, k], in panels."""
        if not self.fits(weight.shape[1]):
            raise UnsupportedError(
                f"'{self.symbol}' takes no rows of {weight.shape[1]} numbers",
                hint="use `IntegerMatmul`, which takes any",
            )
        return pack_planes(weight.T[None], self.pair)

    def unpack(self, packed: Bytes, n: int, k: int) -> Bytes:
        return unpack_planes(packed, 1, k, n, self.pair)[0].T

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, parameters(self.output), public=True)
        x, ldx, w, x_scale, together, w_scale, bias, add, *more = f.parameters
        *outputs, ldy, m, n, k, lo, hi, thread, threads = more
        row_first, row_last, first, last = share(f, m, n, k, thread, threads)
        room, table = f.array("i8", ROOM), f.array("ptr", BLOCK_ROWS)
        record = record_bytes(f, self.pair, k)
        most = f.smaller(f.integer(ROOM) // record, BLOCK_ROWS)
        with f.loop(row_first, row_last, most) as over_rows:
            row = over_rows.index
            rows = f.smaller(row_last - row, most)
            f.call(pack_records(self.pair), f.at(x, row * ldx, "i8"), ldx, rows, k, room)
            with f.loop(0, rows) as loop:
                f.store(f.at(room, loop.index * record, "i8"), table, loop.index)
            f.call(
                sweep(self.pair, self.output),
                table,
                row,
                rows,
                1,
                f.ceiling(k, WORD),
                w,
                x_scale,
                together,
                w_scale,
                bias,
                row_of(f, add, row * ldy),
                *advance(f, self.output, outputs, row * ldy),
                ldy,
                n,
                first,
                last,
                lo,
                hi,
            )
        return f
