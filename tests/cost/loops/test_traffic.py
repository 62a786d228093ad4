"""Bytes that cross into a memory, against a simulation that remembers one tile of each operand."""

from __future__ import annotations

from itertools import product as every

from hypothesis import given
from hypothesis import strategies as st

from fewbit.cost.loops import LoopNest, bytes_moved
from fewbit.cost.loops.traffic import bytes_at_levels, fits
from tests.cost.loops.nests import matmul


def simulated(nest: LoopNest, tile: tuple[int, ...], order: tuple[int, ...]) -> list[int]:
    """Walk over tiles, and count a tile of an operand whenever it is another than the last."""
    trips = [range(-(-e // t)) for e, t in zip(nest.extents, tile, strict=True)]
    moved = [0] * len(nest.accesses)
    last: list[tuple[int, ...] | None] = [None] * len(nest.accesses)
    for place in every(*(trips[loop] for loop in order)):
        at = dict(zip(order, place, strict=True))
        for i, access in enumerate(nest.accesses):
            now = tuple(at[loop] for loop in sorted(access.loops))
            if now != last[i]:
                moved[i] += access.footprint(tile)
                last[i] = now
    return moved


@given(st.data())
def test_reads_are_those_of_a_walk(data: st.DataObject) -> None:
    tile = data.draw(st.tuples(*(st.sampled_from([1, 2, 4]) for _ in range(3))))
    trips = data.draw(st.tuples(*(st.integers(1, 3) for _ in range(3))))
    order = tuple(data.draw(st.permutations(range(3))))
    nest = matmul(*(t * n for t, n in zip(tile, trips, strict=True)))
    counted = bytes_moved(nest, tile, order)
    walked = simulated(nest, tile, order)
    assert list(counted[:2]) == walked[:2]
    assert counted[2] in (walked[2], 2 * walked[2])


def test_partial_sums_are_read_back() -> None:
    nest = matmul(8, 8, 8)
    once = bytes_moved(nest, (4, 4, 8))[2]
    split_inside = bytes_moved(nest, (4, 4, 2))[2]
    split_outside = bytes_moved(nest, (4, 4, 2), order=(2, 0, 1))[2]
    assert once == split_inside == 4 * 64
    assert split_outside == 2 * 4 * 64 * 4


def test_levels_and_capacity() -> None:
    nest = matmul(64, 64, 64)
    near, far = bytes_at_levels(nest, [(4, 16, 64), (64, 64, 64)])
    assert near > far == nest.bytes
    assert fits(nest, (4, 4, 64), 4 * (4 * 64 + 64 * 4 + 16))
    assert not fits(nest, (4, 4, 64), 4 * (4 * 64 + 64 * 4 + 16) - 1)
