"""Which loops to take in tiles, in what order, and how large: pure arithmetic on strides and sizes.

A nest streams where its innermost loop goes from element to element in all memory that it touches;
LLVM vectorizes that, and no tile makes it faster. Two kinds of nests do not stream:

- **Transposing**: reads have unit stride along one loop, writes along another. Tiles are of whole
  cache lines, and in them blocks are transposed in vector registers.
- **Summing across**: the innermost loop is a sum, of floats, which may not be reordered, or of
  strided elements. The loop with unit stride in the results goes into its place, and
  the sum in steps so short that the compiler unrolls them and keeps accumulators in registers.

Sums are taken in the order in which they were: only independent iterations change places.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

Kind = Literal["parallel", "reduction"]

CACHE_LINE = 64
BLOCK = 8
"""Rows and columns of what is transposed in registers."""
ROW = 128
"""Elements of a row of the result that a transposing tile has."""
LANES = 64
"""Results that a tile of sums has; fewer would be unrolled, and not be vectorized."""
FEWEST_LANES = 16
STEP = 4
"""Summands that are added to each result before the next result's turn."""
WORTH_TILING = 4096
"""Iterations of a nest below which nothing can be gained."""
ENOUGH = 8
"""Tiles that several threads can share evenly."""
AFFINE = 32
"""The side of a tile of affine loops."""


@dataclass(frozen=True)
class Access:
    """An operand of a nest: how far each loop moves on in it, in elements."""

    strides: tuple[int, ...]
    bytes: int
    """The size of one element."""

    def in_row(self, loop: int) -> bool:
        """Return whether the loop has stride 1 or 0."""
        return self.strides[loop] in (0, 1)


@dataclass(frozen=True)
class Nest:
    kinds: tuple[Kind, ...]
    sizes: tuple[int | None, ...]
    """Iterations of each loop; None where they are dynamic."""
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    floats: bool
    """Whether results are floats, whose sums may not be reordered."""
    plain: bool
    """Whether vectors can take the place of its scalars."""
    linear: bool = True
    """Whether indices are sums of loops, so that views can be cut out of operands."""

    def loops(self, kind: Kind) -> list[int]:
        return [loop for loop, k in enumerate(self.kinds) if k == kind]

    def at_least(self, loop: int, size: int) -> bool:
        known = self.sizes[loop]
        return known is None or known >= size

    @property
    def worth_tiling(self) -> bool:
        if len(self.kinds) < 2 or 0 in self.sizes:
            return False
        return None in self.sizes or prod(s or 1 for s in self.sizes) >= WORTH_TILING


@dataclass(frozen=True)
class Tiling:
    order: tuple[int, ...]
    """The loops, from the outermost to the innermost."""
    tiles: tuple[int, ...]
    """Iterations of each, in that order, that are in a tile; 0 is all of them."""
    blocks: tuple[int, ...] = ()
    """Iterations that become vectors; none where the compiler finds them itself."""
    shared: int | None = None
    """The place, among the loops that are tiled, of the one that threads share."""


def choose_tiling(nest: Nest) -> Tiling | None:
    """Return how to tile; None where the nest streams, or is too small."""
    if not nest.worth_tiling or not nest.linear:
        return None
    tiling = _transposing(nest) or _summing_across(nest)
    return tiling and _with_shared_loop(tiling, nest)


def _transposing(nest: Nest) -> Tiling | None:
    if not nest.plain or nest.loops("reduction"):
        return None
    along = _row_of_results(nest)
    if along is None:
        return None
    transposed = [read for read in nest.reads if read.strides[along] > 1]
    across = next((read.strides.index(1) for read in transposed if 1 in read.strides), None)
    if across is None or not all(nest.at_least(loop, BLOCK) for loop in (across, along)):
        return None
    others = [loop for loop in range(len(nest.kinds)) if loop not in (across, along)]
    widest = max(access.bytes for access in (*nest.reads, *nest.writes))
    lines = 2 * CACHE_LINE // widest
    rows = lines if _many(nest, others) else _several(nest.sizes[across], lines, BLOCK)
    ones = (1,) * len(others)
    return Tiling(
        (*others, across, along),
        (*ones, rows, _part_of(nest.sizes[along], ROW)),
        (*ones, BLOCK, BLOCK),
    )


def _summing_across(nest: Nest) -> Tiling | None:
    sums = nest.loops("reduction")
    along = _row_of_results(nest)
    if not sums or along is None or along == len(nest.kinds) - 1:
        return None
    if not all(read.in_row(along) for read in nest.reads) or not nest.at_least(along, FEWEST_LANES):
        return None
    last = sums[-1]
    if not nest.floats and all(read.in_row(last) for read in nest.reads):
        return None
    others = [loop for loop in nest.loops("parallel") if loop != along]
    width = nest.sizes[along]
    lanes = _part_of(width, LANES) if _many(nest, others) else _several(width, LANES, FEWEST_LANES)
    ones = (1,) * (len(others) + len(sums) - 1)
    step = STEP if nest.at_least(last, 2 * STEP + 1) else 0
    return Tiling((along, *others, *sums), (lanes, *ones, step))


def _row_of_results(nest: Nest) -> int | None:
    """Return the loop with unit stride in everything that is written."""
    rows = {write.strides.index(1) if 1 in write.strides else None for write in nest.writes}
    return rows.pop() if len(rows) == 1 else None


def _many(nest: Nest, loops: list[int]) -> bool:
    return any(nest.at_least(loop, ENOUGH) for loop in loops)


def _part_of(size: int | None, tile: int) -> int:
    """Return the tile size, or 0 where all is one tile."""
    return 0 if size is not None and size <= tile else tile


def _several(size: int | None, tile: int, least: int) -> int:
    """Return the tile size, reduced where there would be few tiles."""
    while size is not None and tile > least and -(-size // tile) < ENOUGH:
        tile //= 2
    return max(tile, least)


def _with_shared_loop(tiling: Tiling, nest: Nest) -> Tiling:
    """Return the tiling with the loop that threads share: the first of many tiles, or of most."""
    tiled = [(loop, tile) for loop, tile in zip(tiling.order, tiling.tiles, strict=True) if tile]
    counts = {
        place: None if (size := nest.sizes[loop]) is None else -(-size // tile)
        for place, (loop, tile) in enumerate(tiled)
        if nest.kinds[loop] == "parallel"
    }
    enough = [place for place, count in counts.items() if count is not None and count >= ENOUGH]
    unknown = [place for place, count in counts.items() if count is None]
    most = sorted(counts, key=lambda place: -(counts[place] or 0))
    place = next(iter([*enough, *unknown, *most]), None)
    return Tiling(tiling.order, tiling.tiles, tiling.blocks, place)


def affine_tiles(nest: Nest) -> tuple[int, ...] | None:
    """Return tile sizes of affine loops, in order; None where the nest streams."""
    inner = len(nest.kinds) - 1
    accesses = (*nest.reads, *nest.writes)
    if not nest.worth_tiling or all(access.in_row(inner) for access in accesses):
        return None
    used = [any(access.strides[loop] for access in accesses) for loop in range(inner + 1)]
    return tuple(AFFINE if each else 1 for each in used)
