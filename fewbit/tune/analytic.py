"""Our own model: cycles of the arithmetic, counted tile by tile, and bytes at each memory.

A step of a register tile takes as long as its multiplications, its loads, or the wait for the sum
before. Tiles at the edges are smaller and take as long per row; a vector that is not full takes as
long as a full one. Around them come the start and end of a tile, where sums are loaded and stored.
Each memory adds the bytes that cross into it; arithmetic and memory overlap, as in `cost/`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod

from fewbit.cost.hardware import Hardware
from fewbit.cost.loops import LoopNest
from fewbit.cost.loops.traffic import held_and_moved
from fewbit.tune.roles import Roles, roles_of
from fewbit.tune.schedule import Schedule, Tile
from fewbit.tune.space import accumulator_bits

POWER = 2
"""How sharp the corner between computing and reading is."""
TILE_CYCLES = 8.0
"""Cycles to begin and end a register tile, besides its accumulators."""
SUM_CYCLES = 1.5
"""Cycles to load a vector of accumulators and store it."""
LOOP_CYCLES = 1.0
"""Cycles of an iteration of the loop over unrolled steps."""
GROUP_CYCLES = 25.0
"""Cycles of a workgroup."""
SPILLED = 3.0
"""Factor on steps whose accumulators and operands do not fit into registers."""
BROADCAST = 2
"""Loads that a broadcast takes: measured, also where a multiplication does it."""
RAGGED = 6.0
"""Factor where the vectors of a tile are no power of two: LLVM scalarizes some of them."""
MASKED, MASKED_STEP = 1.2, 8.0
"""Factors on matmuls whose last columns or rows are masked; the second without unrolling."""
SCALAR = 2.5
"""Cycles of a MAC in a convolution whose tiles leave a tail: it is scalar, not masked."""
SCATTERED, SCATTERED_UNROLLED = 1.4, 2.2
"""Cycles of a MAC where all of it is scalar, because the image is channels-first (NCHW)."""
OVERLAP = 100
"""Steps of one tile during which the next begins, out of order: short sums do not wait."""
TRANSPOSED: dict[float, tuple[dict[int, float], float]] = {
    0.25: ({}, 1.5),
    0.5: ({8: 1.5, 16: 2.0}, 3.0),
    1: ({1: 10.0, 2: 6.0, 4: 4.0, 8: 5.0, 16: 2.5}, 7.0),
    2: ({4: 4.5, 16: 14.0}, 8.0),
    4: ({2: 9.0, 4: 5.0, 8: 8.0, 16: 20.0}, 13.0),
    8: ({8: 12.0, 16: 30.0}, 18.0),
}
"""Cycles to transpose a vector of transposed weights, by the vectors of a tile: at so many unrolled
steps, and at any other number. Squares of a vector's size are transposed in registers."""
RUN, BROKEN = 64, 0.7
"""Contiguous bytes, and how much longer memories take for them than for long rows."""
USED = 0.75
"""Part of a cache that one op can hope to keep."""


@dataclass(frozen=True)
class Analytic:
    """The analytic model of one processor."""

    hardware: Hardware
    name: str = "analytic"

    def can(self, nest: LoopNest) -> str | None:
        return None

    def seconds(self, nest: LoopNest, schedule: Schedule) -> float:
        roles = roles_of(nest)
        if roles is None:
            return self.streaming(nest)
        computing = self._cycles(nest, roles, schedule) / self.hardware.clock_hz
        reading = self._reading(nest, roles, schedule)
        return (computing**POWER + reading**POWER) ** (1 / POWER)

    def streaming(self, nest: LoopNest) -> float:
        """Return the time of nests without MACs: elementwise, reductions, pooling."""
        lanes = max(1, self.hardware.vector_bits // max(a.bits for a in nest.accesses))
        work = nest.operations / lanes / self.hardware.multipliers / self.hardware.clock_hz
        return max(work, nest.bytes / self._bandwidth(nest.bytes))

    def _cycles(self, nest: LoopNest, roles: Roles, schedule: Schedule) -> float:
        if roles.scattered:
            return _scalars(nest, roles, schedule)
        vector = schedule.vector
        lanes = max(1, self.hardware.vector_bits // accumulator_bits(nest))
        steps = prod(nest.extents[i] for i in roles.sums)
        turns = steps / max(1, prod(vector[i] for i in roles.sums))
        transposing = self._transposing(nest, roles, schedule, lanes)
        total = 0.0
        for rows, columns, count in _register_tiles(nest, roles, vector):
            vectors = -(-columns // lanes)
            step = self._step(rows, vectors, nest, roles, vector, transposing)
            sums = rows * vectors
            total += count * (TILE_CYCLES + SUM_CYCLES * sums + steps * step + turns * LOOP_CYCLES)
        return self._with_tails(total, nest, roles, vector) + _groups(nest, schedule) * GROUP_CYCLES

    def _step(
        self,
        rows: int,
        vectors: int,
        nest: LoopNest,
        roles: Roles,
        tile: Sequence[int],
        transposing: float,
    ) -> float:
        """Return cycles of one step of a register tile."""
        hardware, sums = self.hardware, rows * vectors
        steps = prod(nest.extents[i] for i in roles.sums)
        batch = prod(tile[i] for i in roles.batches)
        computing = max(
            sums / hardware.multipliers,
            _loads(rows, vectors, batch, nest, roles, tile) / hardware.loads,
        )
        step = max(
            computing + vectors * batch * transposing,
            hardware.latency * steps / (steps + OVERLAP),
        )
        if vectors & (vectors - 1):
            step *= RAGGED
        shared = vectors * (tile[roles.inner or 0] if roles.inner in roles.windows else 1)
        spilled = sums + shared + 1 > hardware.registers
        return step * (SPILLED if spilled else 1.0)

    def _transposing(self, nest: LoopNest, roles: Roles, schedule: Schedule, lanes: int) -> float:
        """Return cycles for each vector of weights of a step, where they are transposed."""
        if not roles.transposed or roles.inner is None:
            return 0.0
        tile = schedule.vector
        size = tile[roles.columns] / lanes
        known = max((n for n in TRANSPOSED if n <= size), default=min(TRANSPOSED))
        table, others = TRANSPOSED[known]
        cycles = table.get(tile[roles.inner], others)
        steps = prod(tile[i] for i in roles.sums)
        held = -(-tile[roles.columns] // lanes) * steps <= self.hardware.registers
        if not held or any(tile[i] < nest.extents[i] for i in roles.sums):
            return cycles
        # A sum that is fully unrolled: weights are transposed once for all rows of a workgroup.
        parts = zip(nest.extents, schedule.distribution, tile, strict=True)
        tiles = [-(-min(part or extent, extent) // size) for extent, part, size in parts]
        return cycles / prod(tiles[i] for i in roles.rows)

    def _with_tails(
        self, cycles: float, nest: LoopNest, roles: Roles, tile: Sequence[int]
    ) -> float:
        """Return the cycles with what tails of tiles add."""
        loops = (*roles.rows, roles.columns)
        if not any(nest.extents[i] % min(tile[i], nest.extents[i]) for i in loops):
            return cycles
        if roles.windows:
            return SCALAR * nest.macs
        single = roles.transposed and roles.inner is not None and tile[roles.inner] == 1
        return cycles * (MASKED_STEP if single else MASKED)

    def _reading(self, nest: LoopNest, roles: Roles, schedule: Schedule) -> float:
        """Return seconds that memories take, one after the other."""
        memories = self.hardware.memories
        if nest.bytes <= memories[0].bytes:
            return 0.0
        moved = _traffic(nest, roles, schedule)
        broken = 1 + BROKEN * (RUN / _run(nest, schedule)) ** 2
        return sum(
            _bytes_into(nest, near.bytes, moved) * broken / far.bytes_per_second
            for near, far in pairwise(memories)
        )

    def _bandwidth(self, footprint: int) -> float:
        for memory in self.hardware.memories:
            if footprint <= memory.bytes:
                return memory.bytes_per_second
        return self.hardware.memories[-1].bytes_per_second


def _traffic(nest: LoopNest, roles: Roles, schedule: Schedule) -> list[tuple[int, list[int]]]:
    """Return tiles that memories may hold: their bytes, and those moved for each operand."""
    group, groups = _group(nest, schedule), _groups(nest, schedule)
    inside: dict[Tile, tuple[int, list[int]]] = {}
    for tile in _held_tiles(roles, schedule):
        if tile not in inside:
            held, moved = held_and_moved(group, tile)
            inside[tile] = held, [groups * n for n in moved]
    parts: dict[Tile, tuple[int, list[int]]] = {}
    for loops in ((), (roles.columns,), (roles.columns, *roles.rows[-1:])):
        pairs = enumerate(zip(schedule.distribution, nest.extents, strict=True))
        tile = tuple(extent if i in loops else part for i, (part, extent) in pairs)
        if tile not in parts:
            held, moved = held_and_moved(nest, tile)
            parts[tile] = held, list(moved)
    return [*inside.values(), *parts.values()]


def _bytes_into(nest: LoopNest, capacity: int, moved: Sequence[tuple[int, list[int]]]) -> int:
    """Return bytes read into a memory of this size: each operand as often as it was evicted."""
    if nest.bytes <= capacity:
        return 0
    fitting = [bytes_ for size, bytes_ in moved[1:] if size <= USED * capacity]
    return sum(
        max(access.bytes, min(bytes_[place] for bytes_ in (moved[0][1], *fitting)))
        for place, access in enumerate(nest.accesses)
    )


def _groups(nest: LoopNest, schedule: Schedule) -> int:
    sizes = zip(nest.extents, schedule.distribution, strict=True)
    return prod(-(-extent // tile) for extent, tile in sizes if tile)


def _scalars(nest: LoopNest, roles: Roles, schedule: Schedule) -> float:
    unrolled = roles.inner is not None and schedule.vector[roles.inner] > 1
    each = SCATTERED_UNROLLED if unrolled else SCATTERED
    overhead = 1 + 1 / schedule.vector[roles.columns]
    return nest.macs * each * overhead + _groups(nest, schedule) * GROUP_CYCLES


def _run(nest: LoopNest, schedule: Schedule) -> float:
    """Return the contiguous bytes that a register tile reads of the largest operand."""
    largest = max(nest.accesses, key=lambda access: access.bytes)
    (columns,) = [i for i in range(len(nest.loops)) if largest.stride(i) == 1][:1] or [None]
    if columns is None or nest.loops[columns].kind == "reduction":
        return float("inf")
    return schedule.vector[columns] * largest.bits / 8


def _loads(
    rows: int, vectors: int, batch: int, nest: LoopNest, roles: Roles, tile: Sequence[int]
) -> float:
    """Return the vectors that a step loads."""
    if not all(roles.columns in access.loops for access in nest.inputs):
        return BROADCAST * rows + vectors * batch
    # Depthwise: nothing is shared by columns, but neighbouring windows share what they read.
    taps = tile[roles.inner] if roles.inner is not None else 1
    return vectors * ((rows + taps - 1) / taps + 1)


def _held_tiles(roles: Roles, schedule: Schedule) -> list[Tile]:
    """Return tiles of a workgroup that a memory may hold.

    From the innermost loop outwards: registers, the whole sum, all columns, a line.
    """

    def grow(loops: Collection[int]) -> Tile:
        pairs = zip(schedule.vector, schedule.distribution, strict=True)
        sizes = [part if i in loops else size for i, (size, part) in enumerate(pairs)]
        return tuple(0 if i in roles.sums else size for i, size in enumerate(sizes))

    columns, line = roles.columns, roles.rows[-1:]
    return [schedule.vector, grow(()), grow((columns,)), grow((columns, *line))]


def _group(nest: LoopNest, schedule: Schedule) -> LoopNest:
    """Return what one workgroup has of a nest."""
    loops = [
        replace(loop, extent=min(part or loop.extent, loop.extent))
        for loop, part in zip(nest.loops, schedule.distribution, strict=True)
    ]
    return replace(nest, loops=tuple(loops))


def _register_tiles(
    nest: LoopNest, roles: Roles, vector: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield rows and columns of register tiles, those at edges too, and their number."""
    loops = (*roles.rows, roles.columns)
    parts = [_parts(nest.extents[loop], vector[loop]) for loop in loops]
    for chosen in product(*parts):
        *rows, columns = chosen
        yield prod(size for size, _ in rows), columns[0], prod(count for _, count in chosen)


def _parts(extent: int, tile: int) -> list[tuple[int, int]]:
    size = min(tile or extent, extent)
    count, tail = divmod(extent, size)
    parts = [(size, count)] if count else []
    return [*parts, (tail, 1)] if tail else parts
