"""Our own model: cycles of the arithmetic, counted tile by tile, and bytes at each memory.

A step of a register tile takes as long as its multiplications, its loads, or the wait for the sum
before. Tiles at the edges are smaller and take as long per row; a vector that is not full takes as
long as a full one. Around them come the start and end of a tile, where sums are loaded and stored.
Each memory adds the bytes that cross into it; arithmetic and memory overlap, as in `cost/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from fewbit.analysis.loops import LoopNest
from fewbit.analysis.loops.traffic import bytes_moved
from fewbit.hardware import Hardware
from fewbit.tune.roles import Roles, roles_of
from fewbit.tune.schedule import Schedule
from fewbit.tune.space import accumulator_bits

POWER = 3
"""How sharp the corner between computing and reading is."""
TILE_CYCLES = 12.0
"""To begin and end a register tile, besides its sums."""
SUM_CYCLES = 1.5
"""To load a vector of sums and store it."""
LOOP_CYCLES = 1.0
"""Of a turn of the loop over unrolled steps."""
GROUP_CYCLES = 60.0
"""Of a workgroup."""
SPILLED = 3.0
"""Factor on steps whose sums do not fit into registers with what they are made of."""
BROADCAST = 2
"""Loads that one number for all lanes takes: measured, also where a multiplication does it."""
SCALARS = 15.0
"""Factor where the vectors of a tile are no power of two: LLVM takes some of them apart."""
END_CYCLES = 8.0
"""To add up the lanes of a sum."""
DOTS_WIDE = 64
"""Results of a tile from which they are taken for vectors."""
OVERLAP = 100
"""Steps of one tile during which the next begins, out of order: short sums do not wait."""
GATHERED = 16.0
"""Cycles to collect a vector of weights that lie across, number by number."""
ACROSS = {1: 16.0, 2: 8.0, 4: 4.0, 8: 5.0, 16: 2.5}
"""The same where so many steps are unrolled, and weights are transposed in registers."""
ACROSS_WIDE = {1: 16.0, 2: 8.0, 4: 4.5, 8: 8.0, 16: 14.0}
"""And where tiles are wider than one vector."""


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
        reading = self._reading(nest, schedule)
        return (computing**POWER + reading**POWER) ** (1 / POWER)

    def streaming(self, nest: LoopNest) -> float:
        """Nests without products: elementwise, reductions, pooling. Each operand goes by once."""
        lanes = max(1, self.hardware.vector_bits // max(a.bits for a in nest.accesses))
        work = nest.operations / lanes / self.hardware.multipliers / self.hardware.clock_hz
        return max(work, nest.bytes / self._bandwidth(nest.bytes))

    def _cycles(self, nest: LoopNest, roles: Roles, schedule: Schedule) -> float:
        hardware, vector = self.hardware, schedule.vector
        if roles.dots and vector[roles.columns] < DOTS_WIDE:
            return self._dots(nest, roles, schedule)
        lanes = max(1, hardware.vector_bits // accumulator_bits(nest))
        steps = prod(nest.extents[i] for i in roles.sums)
        unrolled = prod(vector[i] for i in roles.sums)
        total = 0.0
        for rows, columns, count in _register_tiles(nest, roles, vector):
            vectors = -(-columns // lanes)
            step = self._step(rows, vectors, nest, roles, vector)
            turns = steps / max(1, unrolled)
            sums = rows * vectors
            total += count * (TILE_CYCLES + SUM_CYCLES * sums + steps * step + turns * LOOP_CYCLES)
        groups = _groups(nest, schedule)
        return total + groups * GROUP_CYCLES

    def _dots(self, nest: LoopNest, roles: Roles, schedule: Schedule) -> float:
        """A matrix times a vector: each result is summed in lanes, and the lanes at its end."""
        lanes = max(1, self.hardware.vector_bits // accumulator_bits(nest))
        together = min(schedule.vector[roles.columns], self.hardware.registers)
        wait = self.hardware.latency / together
        step = max(1 / self.hardware.multipliers, 1.5 / self.hardware.loads, wait)
        vectors = nest.macs / min(lanes, schedule.vector[roles.inner or 0])
        ends = nest.extents[roles.columns] * END_CYCLES
        return vectors * step + ends + _groups(nest, schedule) * GROUP_CYCLES

    def _step(
        self, rows: int, vectors: int, nest: LoopNest, roles: Roles, tile: Sequence[int]
    ) -> float:
        """Cycles of one step of a register tile."""
        hardware, sums = self.hardware, rows * vectors
        steps = prod(nest.extents[i] for i in roles.sums)
        step = max(
            sums / hardware.multipliers,
            _loaded(rows, vectors, nest, roles, tile) / hardware.loads,
            hardware.latency * steps / (steps + OVERLAP),
        )
        if roles.transposed and roles.inner is not None:
            table = ACROSS if vectors == 1 else ACROSS_WIDE
            step += vectors * table.get(tile[roles.inner], GATHERED)
        if vectors & (vectors - 1):
            step *= SCALARS
        spilled = sums + vectors + 1 > hardware.registers
        return step * (SPILLED if spilled else 1.0)

    def _reading(self, nest: LoopNest, schedule: Schedule) -> float:
        """Seconds at the slowest of the memories.

        A level holds what fits of: a register tile with its whole sum, a workgroup's part, all.
        """
        sums = [0 if loop.kind == "reduction" else None for loop in nest.loops]
        panel = _combined(sums, schedule.vector)
        part = _combined(sums, schedule.distribution)
        total = 0.0
        for near, far in zip(
            self.hardware.memories, [*self.hardware.memories[1:], None], strict=False
        ):
            if far is None:
                break
            moved = self._into(nest, near.bytes, schedule, panel, part)
            total = max(total, moved / far.bytes_per_second)
        return total

    def _into(
        self, nest: LoopNest, capacity: int, schedule: Schedule, panel: list[int], part: list[int]
    ) -> int:
        """Bytes that come into a memory of so many: each operand as often as it has been lost."""
        whole = nest.bytes
        if whole <= capacity:
            return 0 if whole * 2 <= capacity else whole // 2
        vector = list(schedule.vector)
        moved = [
            bytes_moved(nest, tile)
            for tile in (part, panel, vector)
            if tile is vector or _footprint(nest, tile) <= capacity
        ]
        return sum(
            max(access.bytes, min(bytes_[place] for bytes_ in moved))
            for place, access in enumerate(nest.accesses)
        )

    def _bandwidth(self, footprint: int) -> float:
        for memory in self.hardware.memories:
            if footprint <= memory.bytes:
                return memory.bytes_per_second
        return self.hardware.memories[-1].bytes_per_second


def _groups(nest: LoopNest, schedule: Schedule) -> int:
    sizes = zip(nest.extents, schedule.distribution, strict=True)
    return prod(-(-extent // tile) for extent, tile in sizes if tile)


def _loaded(rows: int, vectors: int, nest: LoopNest, roles: Roles, tile: Sequence[int]) -> float:
    """Vectors that a step loads."""
    if not all(roles.columns in access.loops for access in nest.inputs):
        return BROADCAST * rows + vectors
    # Depthwise: nothing is shared by columns, but neighbouring windows share what they read.
    taps = tile[roles.inner] if roles.inner is not None else 1
    return vectors * ((rows + taps - 1) / taps + 1)


def _combined(sums: Sequence[int | None], tile: Sequence[int]) -> list[int]:
    return [size if whole is None else whole for whole, size in zip(sums, tile, strict=True)]


def _footprint(nest: LoopNest, tile: Sequence[int]) -> int:
    sizes = tuple(min(t or e, e) for t, e in zip(tile, nest.extents, strict=True))
    return sum(access.footprint(sizes) for access in nest.accesses)


def _register_tiles(
    nest: LoopNest, roles: Roles, vector: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Rows and columns of the register tiles, the smaller ones at edges too, and their number."""
    loops = (*roles.rows, roles.columns)
    parts = [_parts(nest.extents[loop], vector[loop]) for loop in loops]
    for chosen in product(*parts):
        *rows, columns = chosen
        yield prod(size for size, _ in rows), columns[0], prod(count for _, count in chosen)


def _parts(extent: int, tile: int) -> list[tuple[int, int]]:
    whole, rest = divmod(extent, min(tile or extent, extent))
    found = [(min(tile or extent, extent), whole)] if whole else []
    return [*found, (rest, 1)] if rest else found
