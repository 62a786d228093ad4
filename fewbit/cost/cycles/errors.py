"""How far off estimates are, by the size of a layer and the width of its wider operand.

One number for a table hides that tiny layers, and those of one bit, are estimated worse. So errors
are kept as a table of their own: a row for each size in MACs, a column for each width. A size of
which no layers were measured takes the worst of the others, and on top of it the error that a size
has when it is held out whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray

from fewbit.cost.cycles.shapes import Pool, Shape

LIMITS = (1 << 14, 1 << 18, 1 << 22)
"""MACs of the largest layer of each size but the last, which has no limit."""
SIZES = ("up to 16 K", "up to 256 K", "up to 4 M", "more")
WIDTHS = (8, 4, 2, 1)
FEWEST = 8
"""Rows from which on a width of a size has an error of its own."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Errors:
    """Mean relative errors by size and width."""

    cells: tuple[tuple[float, ...], ...]
    """A row for each of `SIZES`, a number for each of `WIDTHS`."""
    measured: tuple[bool, ...]
    """Whether there were layers of each size to measure an error on."""

    def at(self, size: int, bits: int) -> float:
        return self.cells[size][WIDTHS.index(bits)]

    def fill(self, elsewhere: float) -> Errors:
        """Return errors of all sizes: of those not measured, a width's worst, and `elsewhere`."""
        rows = [row for row, known in zip(self.cells, self.measured, strict=True) if known]
        worst = [hypot(max(of_width), elsewhere) for of_width in zip(*rows, strict=True)]
        cells = zip(self.cells, self.measured, strict=True)
        return Errors(tuple(row if known else tuple(worst) for row, known in cells), self.measured)


def size_of(shape: Shape) -> int:
    """Return the place of a layer's size in `SIZES`; pools are of the largest."""
    return len(LIMITS) if isinstance(shape, Pool) else bisect_left(LIMITS, shape.macs)


def errors_by_size(sizes: Sequence[int], bits: Sequence[int], errors: Floats) -> Errors:
    """Return mean errors of rows by their sizes and widths, with 0 where there are no rows.

    A width with few rows takes the error of its size.
    """
    size, width = np.array(sizes), np.array(bits)
    measured = tuple(int((size == number).sum()) >= FEWEST for number in range(len(SIZES)))
    cells: list[tuple[float, ...]] = []
    for number, known in enumerate(measured):
        inside = size == number
        of_width = [errors[inside & (width == each)] for each in WIDTHS]
        every = [part if len(part) >= FEWEST else errors[inside] for part in of_width]
        cells.append(tuple(float(part.mean()) if known else 0.0 for part in every))
    return Errors(tuple(cells), measured)


def combine(every: Sequence[Errors]) -> Errors:
    """Return the errors of an estimate that uses several rules: they add as squares."""
    tables = zip(*(each.cells for each in every), strict=True)
    cells = tuple(tuple(hypot(*of) for of in zip(*rows, strict=True)) for rows in tables)
    measured = zip(*(each.measured for each in every), strict=True)
    return Errors(cells, tuple(all(known) for known in measured))
