"""The schedules that a matmul may have on a processor: register tiles, unrolling, workgroups.

All register tiles whose sums fit into the registers are there, in whole vectors and with rows that
divide evenly where they can. The space has thousands of schedules; a cost model ranks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from fewbit.cost.hardware import Hardware
from fewbit.cost.loops import LoopNest
from fewbit.tune.roles import Roles, roles_of
from fewbit.tune.schedule import Schedule, Tile

MOST_ROWS = 28
MOST_UNROLLED = 16
VECTORS = (1, 2, 4, 8)
"""Side by side; other numbers of them become scalars in LLVM, thirty times slower."""
LARGEST_VECTOR = 32768
"""Bytes; IREE refuses to compile larger ones."""


def schedules(nest: LoopNest, hardware: Hardware) -> Iterator[Schedule]:
    """Yield all schedules of a nest without loops of one step; none where it is no matmul."""
    roles = roles_of(nest)
    if roles is None:
        return
    for vector in register_tiles(nest, roles, hardware):
        for distribution in workgroup_tiles(nest, roles, vector, hardware.cores):
            yield Schedule(distribution, vector)


def register_tiles(nest: LoopNest, roles: Roles, hardware: Hardware) -> Iterator[Tile]:
    extents = nest.extents
    width = accumulator_bits(nest)
    lanes = max(1, hardware.vector_bits // width)
    columns = extents[roles.columns]
    widths = _widths(columns, lanes)
    heights = [*_heights(nest, roles)]
    for wide, rows, steps in product(widths, heights, _steps(nest, roles)):
        tile = [1] * len(extents)
        tile[roles.columns] = wide
        for loop, size in rows.items():
            tile[loop] = size
        if roles.inner is not None:
            tile[roles.inner] = steps
        sums = prod(rows.values()) * -(-wide // lanes)
        if sums <= hardware.registers - 2 and sums * lanes * width // 8 <= LARGEST_VECTOR:
            yield tuple(tile)


def _widths(columns: int, lanes: int) -> list[int]:
    """Return whole vectors that divide the columns, else parts of one, else any (a tail).

    A tail is masked in matmuls, and scalar in convolutions.
    """
    if columns < lanes:
        return [columns]
    whole = [lanes * n for n in VECTORS if columns % (lanes * n) == 0]
    parts = [lanes // n for n in (2, 4) if lanes // n > 1 and columns % (lanes // n) == 0]
    if whole or parts:
        return whole or parts
    divisors = [n for n in range(lanes // 2, lanes) if columns % n == 0]
    return [*divisors, *(lanes * n for n in VECTORS[:2] if lanes * n < columns)]


def accumulator_bits(nest: LoopNest) -> int:
    return nest.outputs[0].bits


def _heights(nest: LoopNest, roles: Roles) -> Iterator[dict[int, int]]:
    """Yield rows that are in registers together: first of rows that share weights."""
    if not roles.rows:
        yield {}
        return
    shared = [i for i in roles.rows if i not in roles.batches]
    inner = (shared or roles.rows)[-1]
    extent = nest.extents[inner]
    even = [m for m in range(1, MOST_ROWS + 1) if m <= extent and extent % m == 0]
    # A prime extent has no even tiles worth having: the last one is then a smaller one.
    uneven = [m for m in range(2, MOST_ROWS + 1) if m < extent] if max(even) < 4 < extent else []
    for height in sorted({*even, *uneven}):
        yield {inner: height}
    outer = [i for i in roles.rows if i != inner][-1:]
    if roles.windows or extent > MOST_ROWS // 2:
        return
    for loop, count in product(outer, (2, 4, 8)):
        if nest.extents[loop] % count == 0 and count * extent <= MOST_ROWS:
            yield {inner: extent, loop: count}


def _steps(nest: LoopNest, roles: Roles) -> list[int]:
    if roles.inner is None:
        return [1]
    extent = nest.extents[roles.inner]
    return [n for n in range(1, min(extent, MOST_UNROLLED) + 1) if extent % n == 0]


def workgroup_tiles(nest: LoopNest, roles: Roles, vector: Tile, cores: int) -> Iterator[Tile]:
    """Yield what a workgroup has; where that can be, there is a workgroup for each core."""
    choices: list[list[int]] = []
    for loop, extent in enumerate(nest.extents):
        if loop in roles.sums:
            choices.append([0])
            continue
        unit = vector[loop]
        sizes = {min(extent, unit * n) for n in (1, 2, 4, 8)} | {extent}
        choices.append(sorted(s for s in sizes if extent % s == 0 or s == unit))
    tiles = list(product(*choices))
    shared = [tile for tile in tiles if _count(nest, tile) >= cores]
    yield from shared or tiles


def _count(nest: LoopNest, tile: Tile) -> int:
    return prod(-(-e // t) for e, t in zip(nest.extents, tile, strict=True) if t)
