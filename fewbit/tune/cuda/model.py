"""The analytic model of a GPU: how long a matmul takes with some tiles.

Workgroups run in waves, as many at once as threads, registers and shared memory allow. In a wave a
multiprocessor does what takes longest: arithmetic, reads of shared memory, or what comes from the
second-level cache; and it waits for memory at each step of the sum, less the more warps it has to
turn to. The constants are rough: the model ranks, and the device decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod

from fewbit.cost.hardware import Hardware
from fewbit.cost.loops import LoopNest
from fewbit.cost.loops.nest import Access
from fewbit.tune.cuda.space import (
    MMA_COLUMNS,
    MMA_DEPTH,
    MMA_ROWS,
    WARP,
    GpuMatmul,
    Resources,
    matmul_of,
    resources_of,
    sides_of,
    uses_mma,
)
from fewbit.tune.schedule import Schedule

THREADS, REGISTERS, GROUPS = 2048, 65536, 32
"""Limits of a multiprocessor."""
SHARED_BYTES, CACHE_BYTES = 128.0, 32.0
"""Bytes that a multiprocessor reads in a cycle, of shared memory and of its L1 cache."""
WAIT, SYNC = 700.0, 60.0
"""Cycles until memory answers, and until all warps of a workgroup have met."""
MMA_CYCLES = 32.0
"""Cycles of a warp's MMA instruction; an SM has four units for them, at half their speed."""
MOVE = 2.0
"""Instructions that bring a word into shared memory."""
STRIDED = 8.0
OVERLAP = 0.5
"""How much of the shorter of waiting and working is added to the longer."""
LAUNCH = 3e-6


@dataclass(frozen=True)
class GpuAnalytic:
    """Ranks schedules of nests without loops of one step."""

    hardware: Hardware
    name: str = "analytic"

    def can(self, nest: LoopNest) -> str | None:
        return None if matmul_of(nest) else "it is no matmul or convolution"

    def seconds(self, nest: LoopNest, schedule: Schedule) -> float:
        given = matmul_of(nest)
        assert given is not None, "only what it can"
        takes = resources_of(given, schedule)
        at_once = self._at_once(takes)
        cycles, bytes, steps = (_mma_work if uses_mma(schedule) else _thread_work)(given, schedule)
        rate = self.hardware.memories[1].bytes_per_second / self.hardware.cores
        cache = bytes / (rate / self.hardware.clock_hz)
        share = max(1.0, min(at_once, takes.blocks / self.hardware.cores))
        alone = steps * (WAIT + (SYNC if takes.shared else 0.0)) + cycles
        busy = share * max(cycles, cache)
        waves = takes.blocks / (self.hardware.cores * at_once)
        rounds = ceil(waves) if waves < 4 else waves + 0.5
        cycles = max(alone, busy) + OVERLAP * min(alone, busy)
        return LAUNCH + rounds * cycles / self.hardware.clock_hz

    def _at_once(self, takes: Resources) -> int:
        """Return the number of resident workgroups of one multiprocessor."""
        registers = ceil(min(takes.registers, 255) / 8) * 8
        limits = (
            GROUPS,
            THREADS // takes.threads,
            REGISTERS // (registers * takes.threads),
            self.hardware.memories[0].bytes // max(1, takes.shared),
        )
        return max(1, min(limits))


def _thread_work(given: GpuMatmul, schedule: Schedule) -> tuple[float, float, float]:
    """Return cycles and bytes of a workgroup, and its steps along the sum."""
    nest, takes = given.nest, resources_of(given, schedule)
    group = _tile(given, schedule, schedule.distribution)
    thread = tuple(max(1, size) for size in schedule.vector)
    sums = given.roles.sums
    steps = prod(ceil(nest.extents[i] / thread[i]) for i in sums)
    warps = takes.threads / WARP
    fused = prod(thread)
    # A multiprocessor begins four warps' instructions in a cycle.
    arithmetic = steps * warps * fused / 4
    bytes = sum(access.footprint(group) for access in nest.inputs) * steps
    promoted = dict(schedule.how).get("promote")
    reads = sum(_words(a, thread, bool(promoted)) for a in nest.inputs) * warps * steps
    if promoted:
        moved = bytes / (4 * WARP) * MOVE / 4
        return arithmetic + moved + reads * WARP * 4 / SHARED_BYTES, bytes, steps
    return arithmetic + reads * WARP * 4 / CACHE_BYTES, bytes, steps


def _words(access: Access, thread: tuple[int, ...], promoted: bool) -> float:
    """Return loads of an operand in one step, in units of 4 bytes a thread.

    Elements that are neighbours come 16 bytes at a time. What lies in shared memory in steps of
    several pixels was brought there one by one, and falls into the same banks.
    """
    count = prod(thread[i] for i in access.loops)
    inner = next((i for i in range(len(thread)) if access.stride(i) == 1), None)
    wide = min(128 // access.bits, thread[inner]) if inner is not None else 1
    widest = max((abs(c) for index in access.indices or () for c in index.coefficients), default=1)
    conflicts = STRIDED if promoted and widest > 1 else 1
    return count / max(1, wide) * (1 + wide / 4) / 2 * conflicts


def _mma_work(given: GpuMatmul, schedule: Schedule) -> tuple[float, float, float]:
    takes = resources_of(given, schedule)
    *group, _ = schedule.distribution
    *warp, depth = schedule.vector
    steps = ceil(given.depth / (depth * MMA_DEPTH))
    warps, tiles = takes.threads / WARP, prod(warp)
    arithmetic = steps * depth * warps * tiles * MMA_CYCLES / 4
    rows = [loop for loop in given.parallel if loop != given.roles.columns]
    mine = next(a for a in given.nest.inputs if given.roles.columns in a.loops)
    side = dict(zip(given.parallel, warp, strict=True))
    wide = prod(side[i] for i in given.parallel if i in mine.loops) * MMA_COLUMNS
    tall = prod(side[i] for i in rows if i not in mine.loops) * MMA_ROWS
    # A fragment is read element by element, two at a time.
    reads = steps * depth * warps * (wide + tall) * MMA_DEPTH * 2 * 2
    elements = sum(sides_of(given, group)) * depth * MMA_DEPTH
    bytes = steps * elements * 2
    # Patches are gathered with some arithmetic for each element.
    gather = steps * elements / takes.threads * warps * 6 / 4
    return max(arithmetic, reads / SHARED_BYTES) + gather, bytes, steps


def _tile(given: GpuMatmul, schedule: Schedule, group: tuple[int, ...]) -> tuple[int, ...]:
    """Return what a workgroup touches in one step."""
    sums = given.roles.sums
    return tuple(
        max(1, schedule.vector[i]) if i in sums else max(1, group[i])
        for i in range(len(given.nest.loops))
    )
