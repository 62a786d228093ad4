"""How kernels cut a matmul into tiles, and what a step of a tile takes at best.

The cuts are the kernels' own, computed on numbers (`kernels/cuts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from fewbit.kernels.cuts import Known, Number
from fewbit.kernels.pack import panel_starts
from fewbit.kernels.sweep import Heights, share
from fewbit.toolchain.isa import Isa

UNITS = 2
"""Multiplications, and loads, that begin in a cycle."""


@dataclass(frozen=True)
class Part:
    """The rows and the panels, by their vectors, of the thread that has the most."""

    rows: int
    panels: tuple[int, ...]

    @property
    def vectors(self) -> int:
        return sum(self.panels)


def panels(n: int, isa: Isa) -> tuple[int, ...]:
    """Return the vectors of each panel of n columns."""
    starts = panel_starts(n, isa)
    return tuple((b - a) // isa.lanes for a, b in pairwise(starts))


def part(m: int, n: int, k: int, threads: int, isa: Isa) -> Part:
    """Return the part of the last thread, which has the most, as `sweep.share` divides a matmul."""
    sizes = (Number(size) for size in (m, n, k, threads - 1, threads))
    row_first, row_last, first, last = map(int, share(Known(isa), *sizes))
    return Part(row_last - row_first, panels(n, isa)[first:last])


def tiles(rows: int, highest: int, isa: Isa) -> Iterator[tuple[int, int]]:
    """Yield the heights of tiles of about equal height, and how many there are of each."""
    if rows <= 0:
        return
    cut = Heights.of(Known(isa), Number(rows), highest)
    count, least, higher = int(cut.tiles), int(cut.least), int(cut.higher)
    if higher:
        yield least + 1, higher
    yield least, count - higher


def blocks(rows: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the rows of blocks of at most so many, and how many there are of each."""
    whole, remainder = divmod(rows, most)
    if whole:
        yield most, whole
    if remainder:
        yield remainder, 1


def float_step(isa: Isa, rows: int, vectors: int) -> float:
    """Return cycles of a step of a tile: multiplications, loads, or the latency of accumulators."""
    each = 1 if isa.fma else 2
    asks = rows > 1 and vectors > isa.tile_vectors // 2
    loads = _loads(rows, vectors, asks)
    return max(rows * vectors * each / UNITS, loads / UNITS, 4.0 * each)


def _loads(rows: int, vectors: int, asks: bool) -> int:
    """Return the loads of a step; as measured, one vector with its broadcast takes two."""
    return rows * (2 if vectors == 1 else 1) + vectors + asks


def integer_step(
    isa: Isa, rows: int, vectors: int, fields: float = 0.0, chains: int = 1, asks: bool = False
) -> float:
    """Return cycles of a step of integers, with `fields` operations to unpack each vector."""
    dot = isa.dot
    operations = rows * vectors * dot.operations
    operations += rows * dot.row_operations + vectors * (dot.vector_operations + fields)
    loads = _loads(rows, vectors, asks)
    return max(operations / UNITS, loads / UNITS, dot.latency / chains)
