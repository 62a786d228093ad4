"""Bytes that a nest moves between memories, when it is taken in tiles.

A tile's operands are read again whenever a loop on which they depend goes on, and for all loops
around that one. Loops inside it find them where they are: that is what the order of loops is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fewbit.cost.loops.nest import Access, LoopNest


def bytes_moved(
    nest: LoopNest, tile: Sequence[int], order: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return, by operand, the bytes moved into a memory that holds one tile of it.

    `tile` has the steps of each loop in a tile, 0 for all of them; `order` is that of the loops
    over tiles, outermost first, as in the nest if it is not given.
    """
    return held_and_moved(nest, tile, order)[1]


def held_and_moved(
    nest: LoopNest, tile: Sequence[int], order: Sequence[int] | None = None
) -> tuple[int, tuple[int, ...]]:
    """Return the bytes of one tile of all operands, and the bytes moved, by operand."""
    sizes = tuple(min(t or e, e) for t, e in zip(tile, nest.extents, strict=True))
    trips = [-(-e // s) for e, s in zip(nest.extents, sizes, strict=True)]
    loops = tuple(order) if order is not None else tuple(range(len(trips)))
    held = [access.footprint(sizes) for access in nest.accesses]
    pairs = zip(nest.accesses, held, strict=True)
    return sum(held), tuple(
        _bytes_of_access(nest, access, size, trips, loops) for access, size in pairs
    )


def bytes_at_levels(nest: LoopNest, tiles: Sequence[Sequence[int]]) -> list[int]:
    """Return the bytes moved into the memory that holds each tile, from the nearest outwards.

    An outer level moves no more than an inner one asks for.
    """
    totals: list[int] = []
    for tile in tiles:
        moved = sum(bytes_moved(nest, tile))
        totals.append(min(moved, totals[-1]) if totals else moved)
    return totals


def fits(nest: LoopNest, tile: Sequence[int], capacity: int) -> bool:
    """Return whether a memory of so many bytes holds what a tile touches."""
    sizes = tuple(min(t or e, e) for t, e in zip(tile, nest.extents, strict=True))
    return sum(access.footprint(sizes) for access in nest.accesses) <= capacity


def _bytes_of_access(
    nest: LoopNest,
    access: Access,
    footprint: int,
    trips: Sequence[int],
    order: Sequence[int],
) -> int:
    needed = access.loops if access.indices is not None else frozenset(order)
    moving = [place for place, loop in enumerate(order) if loop in needed and trips[loop] > 1]
    if not moving:
        return footprint
    around = order[: moving[-1] + 1]
    outside = prod(trips[loop] for loop in around)
    moved = outside * footprint
    if access.role == "output" and any(
        nest.loops[loop].kind == "reduction" and trips[loop] > 1 for loop in around
    ):
        moved *= 2  # partial sums are read back
    return moved
