"""Bytes that only a run knows, in panels: the keys of attention.

    void fewbit_pack_b_i8(ptr b, i64 row_stride, i64 column_stride, ptr packed,
                          i64 k, i64 n, i64 thread, i64 threads)

The layout is that of `pack_taps` for one tap of 8 bits. Where the numbers of a column stand side by
side, a step of a column is one word, and blocks of words are transposed in registers; the edges are
moved byte by byte.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.kernel import Kernel
from fewbit.kernels.pack import Panels, pack_function
from fewbit.llvm.types import I8


@dataclass(frozen=True)
class IntegerPackB(Kernel):
    """Packs a matrix of bytes that is not known before the run."""

    @property
    def symbol(self) -> str:
        return "fewbit_pack_b_i8"

    def function(self) -> Function:
        f = pack_function(self)
        b, row_stride, column_stride, packed, k, n, thread, threads = f.parameters
        lanes, step = self.isa.lanes, self.isa.step
        panels, steps = Panels.of(f, n), f.ceiling(k, step)
        start, stop = panels.count * thread // threads, panels.count * (thread + 1) // threads
        with f.loop(start, stop) as over_panels:
            column, vectors = panels.at(f, over_panels.index)
            width = vectors * lanes
            columns = f.smaller(n - column, width)
            to = f.at(packed, column * steps * step, "i8")
            source = f.at(b, column * column_stride, "i8")
            together = row_stride.equals(1)
            block_columns = f.select(together, columns // lanes * lanes, 0)
            block_steps = k // step // lanes * lanes
            with (
                f.loop(0, block_columns, lanes) as across,
                f.loop(0, block_steps, lanes) as down,
            ):
                corner = f.at(source, across.index * column_stride + down.index * step, "i8")
                place = (down.index * width + across.index) * step
                self._block(f, corner, column_stride, f.at(to, place, "i8"), width)
            with f.loop(0, steps) as down:
                s = down.index
                first = f.select(s < block_steps, block_columns, 0)
                with f.loop(first, width) as across, f.loop(0, step) as along:
                    # The last step ends where the column does, and skips what is packed already.
                    begins = f.smaller(s * step, f.larger(k - step, 0))
                    at = begins + along.index
                    exists = (across.index < columns) & (at >= s * step) & (at < k)
                    place = f.select(exists, across.index * column_stride + at * row_stride, 0)
                    byte = f.load("i8", f.select(exists, source, f.zeros()), place)
                    number = f.select(exists, self._number(f, byte), f.constant("i8", 0))
                    f.store(number, to, (s * width + across.index) * step + along.index)
        return f

    def _block(self, f: Function, corner: Value, stride: Value, to: Value, width: Value) -> None:
        """Transpose a square block: as many steps and columns as a vector has lanes."""
        lanes, step = self.isa.lanes, self.isa.step
        words = f"<{lanes} x i{8 * step}>"
        loaded = [f.load(words, f.at(corner, stride * i, "i8")) for i in range(lanes)]
        for i, line in enumerate(f.transpose(loaded)):
            bytes_ = self._number(f, f.bits(line, f"<{lanes * step} x i8>"))
            f.store(bytes_, f.at(to, width * (i * step), "i8"))

    def _number(self, f: Function, value: Value) -> Value:
        """Return bytes as what is stored of them: w + 128 is w with its sign bit flipped."""
        bias = f.constant("i8", Fields(self.isa).bias)
        if value.type == I8:
            return value ^ bias
        return value ^ f.broadcast(bias, self.isa.lanes * self.isa.step)
