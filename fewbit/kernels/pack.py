"""Weights in panels: the order in which a tile reads them.

A matrix [k, n] becomes panels, each a few whole vectors wide, and about equally wide, so that no
narrow one is left over. A panel is its rows one after another: a tile reads it from front to back.
The last vector is padded with zeros. The panel from a column on is at `column · k`.

    void fewbit_pack_b_f32(ptr b, i64 row_stride, i64 column_stride, ptr packed,
                           i64 k, i64 n, i64 thread, i64 threads)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Generic

import numpy as np

from fewbit.kernels.cuts import Arithmetic, Known, Number, S, T
from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import Floats, Kernel
from fewbit.toolchain.isa import Isa

ROWS_AT_ONCE = 16


def packed_size(k: int, n: int, isa: Isa) -> int:
    """Return floats that a packed matrix [k, n] takes."""
    return k * -(-n // isa.lanes) * isa.lanes


def pack_panels(matrix: Floats, isa: Isa) -> Floats:
    """Return a matrix [k, n] in panels, as one row of numbers."""
    return np.concatenate(split_panels(matrix, isa))


def split_panels(matrix: Floats, isa: Isa) -> list[Floats]:
    """Return the panels of a matrix [k, n], each as one row of numbers."""
    k, n = matrix.shape
    starts = panel_starts(n, isa)
    padded = np.zeros((k, starts[-1]), np.float32)
    padded[:, :n] = matrix
    return [padded[:, a:b].ravel() for a, b in pairwise(starts)]


def panel_starts(n: int, isa: Isa) -> list[int]:
    """Return the first column of each panel of n columns, and where the last one ends."""
    f = Known(isa)
    panels = Panels.of(f, Number(n))
    return [int(panels.at(f, Number(p))[0]) for p in range(int(panels.count) + 1)]


@dataclass(frozen=True)
class Panels(Generic[S]):
    """How many panels n columns make: the first `wider` have a vector more."""

    count: S
    least: S
    wider: S

    @staticmethod
    def of(f: Arithmetic[T], n: T) -> Panels[T]:
        vectors = f.ceiling(n, f.isa.lanes)
        count = f.larger(f.ceiling(vectors, f.isa.tile_vectors), 1)
        least = vectors // count
        return Panels(count, least, vectors - least * count)

    def at(self, f: Arithmetic[S], panel: S) -> tuple[S, S]:
        """Return the panel's first column, and how many vectors wide it is."""
        column = (panel * self.least + f.smaller(panel, self.wider)) * f.isa.lanes
        return column, f.select(panel < self.wider, self.least + 1, self.least)


def pack_function(kernel: Kernel) -> Function:
    """Return a function to pack a matrix [k, n] with these strides; threads share the panels."""
    return Function(
        kernel.isa,
        kernel.symbol,
        "ptr b, i64 row_stride, i64 column_stride, ptr packed, i64 k, i64 n, i64 thread, "
        "i64 threads",
        public=True,
    )


@dataclass(frozen=True)
class PackB(Kernel):
    """Packs a matrix that is not known before the run."""

    @property
    def symbol(self) -> str:
        return "fewbit_pack_b_f32"

    def function(self) -> Function:
        f = pack_function(self)
        b, row_stride, column_stride, packed, k, n, thread, threads = f.parameters
        lanes = self.isa.lanes
        panels = Panels.of(f, n)
        start, stop = panels.count * thread // threads, panels.count * (thread + 1) // threads
        # A few rows at a time over all panels: b is read line by line.
        with f.loop(0, k, ROWS_AT_ONCE) as over_rows, f.loop(start, stop) as over_panels:
            column, vectors = panels.at(f, over_panels.index)
            columns, width = f.smaller(n - column, vectors * lanes), vectors * lanes
            row, rows = over_rows.index, f.smaller(k - over_rows.index, ROWS_AT_ONCE)
            to = f.at(packed, column * k + row * width)
            source = f.at(b, column * column_stride + row * row_stride)
            with (
                f.when(column_stride.equals(1)),
                f.loop(0, rows) as loop,
                f.loop(0, width, lanes) as over_lanes,
            ):
                mask = f.first_lanes(columns - over_lanes.index)
                values = f.at(source, loop.index * row_stride + over_lanes.index)
                place = loop.index * width + over_lanes.index
                f.store(f.load_part(values, mask), f.at(to, place))
            in_columns = column_stride.differs(1) & row_stride.equals(1)
            whole_columns = f.select(in_columns, columns // lanes * lanes, 0)
            whole_rows = rows // lanes * lanes
            with f.loop(0, whole_columns, lanes) as across, f.loop(0, whole_rows, lanes) as down:
                corner = f.at(source, across.index * column_stride + down.index)
                lines = [f.load(f.vector, f.at(corner, column_stride * i)) for i in range(lanes)]
                for i, line in enumerate(f.transpose(lines)):
                    f.store(line, f.at(to, (down.index + i) * width + across.index))
            with f.when(column_stride.differs(1)), f.loop(0, width) as across:
                j = across.index
                done = f.select(j < whole_columns, whole_rows, 0)
                exists = j < columns
                with f.loop(done, rows) as down:
                    at = f.select(exists, j * column_stride + down.index * row_stride, 0)
                    value = f.load("float", f.select(exists, source, f.zeros()), at)
                    f.store(value, to, down.index * width + j)
        return f
