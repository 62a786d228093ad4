"""Tiles of matmuls on a GPU, within what its workgroups may have: threads, registers and memory.

A workgroup has a tile of results. Without tensor cores each thread has a smaller one, and operands
may be brought into shared memory first (`promote`). With tensor cores (`mma`) a warp has tiles of
16 x 8 results, and all sums of a convolution are one loop: IREE lays its patches out as a matrix,
tile by tile. In a schedule, `distribution` is the workgroup's tile and `vector` the thread's, or
the warp's in instructions; of sums, `vector` has what is taken in one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil, prod

from fewbit.cost.hardware import Hardware, find_hardware
from fewbit.cost.loops import LoopNest
from fewbit.errors import UsageError
from fewbit.kernels.cuda.arch import Arch
from fewbit.tune.roles import Roles, roles_of
from fewbit.tune.schedule import Schedule, Tile

WARP = 32
MOST_THREADS, MOST_USEFUL_THREADS = 1024, 512
LEAST_SUMS, MOST_SUMS = 8, 64
"""Results of one thread: fewer share too little, more do not stay in its registers."""
FEW_RESULTS = 1 << 18
"""The results of an op below which threads may have single ones."""
SMALL_IMAGE = 14
"""A row of it is too short for a workgroup, which then has several images."""
MOST_MMA = 16
"""Tiles of one warp, of four registers a thread each; IREE unrolls them all, which takes time."""
MMA = "NV_MMA_SYNC_F32_16x8x16_F16"
MMA_ROWS, MMA_COLUMNS, MMA_DEPTH = 16, 8, 16
MOST_WASTE = 1.35
"""Work on results that do not exist, over the least that instructions do."""
COLUMN_GROUPS, COLUMN_THREADS = (8, 16, 32, 64, 128, 256), (1, 2, 4, 8)
DEPTHS = (4, 8, 16, 32)


@dataclass(frozen=True)
class GpuMatmul:
    """A nest without loops of one step, seen as a matmul."""

    nest: LoopNest
    roles: Roles

    @property
    def parallel(self) -> tuple[int, ...]:
        return self.nest.of_kind("parallel")

    @property
    def rows(self) -> tuple[int, ...]:
        """The innermost first, which is tiled most."""
        return tuple(reversed(self.roles.rows))

    @property
    def depth(self) -> int:
        """MACs of one result."""
        return prod(self.nest.extents[i] for i in self.roles.sums)

    @cached_property
    def windowed(self) -> frozenset[int]:
        """Rows along which a window slides."""
        indices = [index for a in self.nest.inputs for index in a.indices or ()]
        pairs = [index.loops for index in indices if len(index.loops) > 1]
        return frozenset(loop for pair in pairs for loop in pair if loop in self.roles.rows)

    @cached_property
    def mma_rows(self) -> int | None:
        """The loop that is the rows of a tensor core's tile: the columns' operand has it not."""
        other = [a for a in self.nest.inputs if self.roles.columns not in a.loops]
        rows = [i for i in self.rows if any(i in a.loops for a in other)]
        mine = [a for a in self.nest.inputs if self.roles.columns in a.loops]
        return next((i for i in rows if not any(i in a.loops for a in mine)), None)

    @property
    def takes_mma(self) -> bool:
        elements = [a.element for a in self.nest.inputs]
        out = self.nest.outputs[0].element
        return elements == ["f16", "f16"] and out == "f32" and self.mma_rows is not None


def matmul_of(nest: LoopNest) -> GpuMatmul | None:
    """Return a nest as a matmul; None where it is none."""
    roles = roles_of(nest)
    if roles is None or not roles.rows or roles.inner is None or len(nest.inputs) != 2:
        return None
    return GpuMatmul(nest, roles)


@dataclass(frozen=True)
class Resources:
    """What a workgroup takes."""

    threads: int
    shared: int
    """Bytes."""
    registers: int
    """Registers of a thread, about."""
    blocks: int
    """Workgroups of the whole op."""


def uses_mma(schedule: Schedule) -> bool:
    return "mma" in dict(schedule.how)


def resources_of(given: GpuMatmul, schedule: Schedule) -> Resources:
    nest, how = given.nest, dict(schedule.how)
    parallel = given.parallel
    group, inner = schedule.distribution, schedule.vector
    blocks = prod(ceil(nest.extents[loop] / group[at]) for at, loop in _places(given, schedule))
    if uses_mma(schedule):
        units = _units(given)
        warps = prod(group[at] // (inner[at] * units[at]) for at in range(len(parallel)))
        tiles = prod(inner[:-1])
        rows, columns = sides_of(given, group)
        depth = inner[-1] * MMA_DEPTH
        # Rows lie some elements apart so that columns fall into different banks.
        shared = (rows + columns) * (depth + 4) * 2
        fragments = 6 * max(2, prod(inner[:-1]) // 2)
        return Resources(warps * WARP, shared, 40 + 4 * tiles + fragments, blocks)
    threads = prod(group[i] // inner[i] for i in parallel)
    shared = 0
    if how.get("promote"):
        tile = tuple(inner[i] if i not in parallel else group[i] for i in range(len(nest.loops)))
        shared = sum(access.footprint(tile) for access in nest.inputs)
    sums = prod(inner[i] for i in parallel)
    sides = sum(access.footprint(_thread_tile(given, schedule)) // 4 for access in nest.inputs)
    return Resources(threads, shared, 24 + sums + min(sides, 64), blocks)


def problem_of(
    given: GpuMatmul, schedule: Schedule, hardware: Hardware, arch: Arch | None = None
) -> str | None:
    """Return why a workgroup cannot have it; None where it can."""
    resources = resources_of(given, schedule)
    limit = hardware.threads or MOST_THREADS
    shared = arch.shared if arch else hardware.memories[0].bytes
    if resources.threads > limit:
        return f"{resources.threads} threads are more than {limit}"
    if resources.threads < WARP or resources.threads % WARP:
        return f"{resources.threads} threads are no whole warps"
    if resources.shared > shared:
        return f"{resources.shared} bytes are more than the {shared} of shared memory"
    if uses_mma(schedule):
        return "a warp has too many results" if prod(schedule.vector[:-1]) > MOST_MMA else None
    if prod(schedule.vector[i] for i in given.parallel) > MOST_SUMS:
        return "a thread has too many results"
    return None


def gpu_schedules(
    nest: LoopNest, hardware: Hardware, arch: Arch | None = None, mma: bool = True
) -> list[Schedule]:
    """Return all schedules that the hardware can have, for a nest without loops of one step.

    Where tensor cores can be used they are: without them a matmul takes ten times as long.
    """
    if hardware.kind != "gpu":
        raise UsageError(f"{hardware.name} is no GPU", hint="fewbit/cost/hardware has h200")
    given = matmul_of(nest)
    if given is None:
        raise UsageError("only matmuls and convolutions have tiles on a GPU")
    every = _mma_schedules(given) if mma and given.takes_mma else _thread_schedules(given)
    return [s for s in every if problem_of(given, s, hardware, arch) is None]


def gpu_hardware(arch: Arch) -> Hardware:
    """Return what is known of a generation: the H200's figures, with its own limits."""
    hardware = find_hardware("h200")
    near = hardware.memories[0].model_copy(update={"bytes": arch.shared})
    update = {"cores": arch.multiprocessors, "memories": (near, *hardware.memories[1:])}
    return hardware if arch.compute == 90 else hardware.model_copy(update=update)


def _thread_schedules(given: GpuMatmul) -> Iterator[Schedule]:
    nest, roles = given.nest, given.roles
    extents, count = nest.extents, len(nest.loops)
    columns = [
        (g, t)
        for g in _divisors(extents[roles.columns], COLUMN_GROUPS)
        for t in COLUMN_THREADS
        if g % t == 0
    ]
    small = extents[given.rows[0]] <= SMALL_IMAGE
    rows = [_row_tiles(extents[loop], at, small) for at, loop in enumerate(given.rows)]
    results = prod(extents[i] for i in given.parallel)
    for (cg, ct), *chosen in product(columns, *rows):
        threads = cg // ct * prod(g // t for g, t in chosen)
        sums = ct * prod(t for _, t in chosen)
        few = results < FEW_RESULTS
        if threads % WARP or not WARP <= threads <= MOST_USEFUL_THREADS:
            continue
        if not (1 if few else LEAST_SUMS) <= sums <= MOST_SUMS:
            continue
        # IREE makes vectors along one side of a window; of two, loops, with sums in memory.
        tiled = [i for i, (_, t) in zip(given.rows, chosen, strict=True) if t > 1]
        if len(given.windowed.intersection(tiled)) > 1:
            continue
        group, thread = [0] * count, [0] * count
        group[roles.columns], thread[roles.columns] = cg, ct
        for loop, (g, t) in zip(given.rows, chosen, strict=True):
            group[loop], thread[loop] = g, t
        for depth, promote in product(_depths(given), (1, 0)):
            for loop, steps in depth.items():
                thread[loop] = steps
            yield Schedule(tuple(group), tuple(thread), how=(("promote", promote),))


def _row_tiles(extent: int, place: int, small: bool) -> list[tuple[int, int]]:
    """Return tiles of a workgroup and of its threads: of the innermost rows many, of others few."""
    if place == 0:
        groups = [d for d in _all_divisors(extent) if d <= 128]
        return [(g, t) for g in groups for t in (1, 2, 4, 7, 8) if g % t == 0]
    if place > 1 and not small:
        return [(1, 1)]
    groups = [d for d in _all_divisors(extent) if d <= 8]
    return [(g, t) for g in groups for t in {1, 2} if g % t == 0 and g <= 7 * t]


def _depths(given: GpuMatmul) -> list[dict[int, int]]:
    """Return tiles along the reduction: a step of windows, or all where channels are few."""
    nest, roles = given.nest, given.roles
    inner = roles.inner or 0
    extent = nest.extents[inner]
    if extent < DEPTHS[0] or (inner in roles.windows):
        whole = {loop: nest.extents[loop] for loop in roles.sums[1:]}
        return [dict.fromkeys(roles.sums, 1) | whole]
    steps = [d for d in DEPTHS if extent % d == 0] or [extent if extent <= 64 else 1]
    return [dict.fromkeys(roles.sums, 1) | {inner: d} for d in steps]


def _mma_schedules(given: GpuMatmul) -> Iterator[Schedule]:
    nest, roles = given.nest, given.roles
    places = {loop: at for at, loop in enumerate(given.parallel)}
    others = [loop for loop in given.rows if loop != given.mma_rows]
    units = _units(given)
    least = prod(
        ceil(nest.extents[loop] / unit) * unit
        for loop, unit in zip(given.parallel, units, strict=True)
    )
    sides = list(product((1, 2, 4), (1, 2, 4)))
    wide = list(product((1, 2, 4, 7, 8), (1, 2, 4)))
    shared_out = [_other_tiles(nest.extents[loop], at) for at, loop in enumerate(others)]
    assert given.mma_rows is not None
    for (rs, rw), (cs, cw), *chosen in product(sides, wide, *shared_out):
        warps = rw * cw * prod(g // s for g, s in chosen)
        tiles = rs * cs * prod(s for _, s in chosen)
        if not (2 <= warps <= 16 and tiles <= MOST_MMA):
            continue
        group, warp = [1] * len(places), [1] * len(places)
        group[places[given.mma_rows]], warp[places[given.mma_rows]] = MMA_ROWS * rs * rw, rs
        group[places[roles.columns]], warp[places[roles.columns]] = MMA_COLUMNS * cs * cw, cs
        for loop, (g, s) in zip(others, chosen, strict=True):
            group[places[loop]], warp[places[loop]] = g, s
        done = prod(ceil(nest.extents[i] / group[places[i]]) * group[places[i]] for i in places)
        if done > least * MOST_WASTE:
            continue
        for depth in (1, 2, 4, 8):
            if depth * MMA_DEPTH <= max(MMA_DEPTH, given.depth):
                how = (("mma", MMA), ("stages", 2))
                yield Schedule((*group, 0), (*warp, depth), how=how)


def _other_tiles(extent: int, place: int) -> list[tuple[int, int]]:
    few = [d for d in _all_divisors(extent) if d <= (8 if place == 0 else 4)]
    return [(g, s) for g in few for s in sorted({1, g}) if g % s == 0]


def _units(given: GpuMatmul) -> list[int]:
    """Return how many results of each loop one instruction has."""
    sizes = {given.mma_rows: MMA_ROWS, given.roles.columns: MMA_COLUMNS}
    return [sizes.get(loop, 1) for loop in given.parallel]


def sides_of(given: GpuMatmul, group: Sequence[int]) -> tuple[int, int]:
    """Return rows and columns of the matmul that a workgroup's tile is."""
    mine = next(a for a in given.nest.inputs if given.roles.columns in a.loops)
    rows = columns = 1
    for at, loop in enumerate(given.parallel):
        if loop in mine.loops:
            columns *= group[at]
        else:
            rows *= group[at]
    return rows, columns


def _places(given: GpuMatmul, schedule: Schedule) -> list[tuple[int, int]]:
    """Return the place of each parallel loop in a schedule's tiles."""
    if uses_mma(schedule):
        return list(enumerate(given.parallel))
    return [(loop, loop) for loop in given.parallel]


def _thread_tile(given: GpuMatmul, schedule: Schedule) -> Tile:
    return tuple(max(1, size) for size in schedule.vector)


def _divisors(extent: int, usual: Sequence[int]) -> list[int]:
    divisors = [d for d in usual if extent % d == 0]
    return divisors or [d for d in _all_divisors(extent) if 4 <= d <= 256] or [extent]


def _all_divisors(extent: int) -> list[int]:
    return [d for d in range(1, extent + 1) if extent % d == 0]
