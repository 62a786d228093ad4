"""Tiles of products on a GPU, within what its workgroups may have: threads and shared memory.

A workgroup has a tile of results, each of its threads a smaller one; both operands are in shared
memory for as many steps of the sum as the tile is deep. IREE's name for that is `TileAndFuse`.
Nothing is timed here: a GPU is not always at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fewbit.analysis.loops import LoopNest
from fewbit.errors import UsageError
from fewbit.hardware import Hardware
from fewbit.tune.roles import Roles, roles_of

GROUPS, THREADS, DEPTHS = (16, 32, 64, 128, 256), (1, 2, 4, 8), (8, 16, 32, 64)
WARP = 32
MOST_SUMS = 64
"""Results of one thread: more do not stay in its registers."""


@dataclass(frozen=True)
class GpuTile:
    group: tuple[int, int]
    """Rows and columns of a workgroup's results."""
    thread: tuple[int, int]
    depth: int

    @property
    def threads(self) -> int:
        return (self.group[0] // self.thread[0]) * (self.group[1] // self.thread[1])

    def shared_bytes(self, bits: int) -> int:
        return (self.group[0] + self.group[1]) * self.depth * bits // 8

    def problem(self, nest: LoopNest, hardware: Hardware) -> str | None:
        """Why the hardware cannot have it; None where it can."""
        limit, shared = hardware.threads or 1024, hardware.memories[0].bytes
        bits = max(access.bits for access in nest.inputs)
        if any(g % t for g, t in zip(self.group, self.thread, strict=True)):
            return "threads do not divide the workgroup"
        if self.threads > limit:
            return f"{self.threads} threads are more than {limit}"
        if self.threads % WARP:
            return f"{self.threads} threads are no whole warps"
        if self.shared_bytes(bits) > shared:
            return f"{self.shared_bytes(bits)} bytes are more than the {shared} of shared memory"
        if self.thread[0] * self.thread[1] > MOST_SUMS:
            return "a thread has too many results"
        return None

    def config(self, nest: LoopNest) -> str:
        """As IREE's attributes: the tiles, and how they are compiled."""
        roles = _roles(nest)
        levels = {
            "reduction": _spread(nest, {roles.inner: self.depth}),
            "thread": _spread(
                nest, {roles.rows[-1]: self.thread[0], roles.columns: self.thread[1]}
            ),
            "workgroup": _spread(
                nest, {roles.rows[-1]: self.group[0], roles.columns: self.group[1]}
            ),
        }
        sizes = ", ".join(f"{name} = {tile}" for name, tile in levels.items())
        return (
            "#iree_codegen.compilation_info<"
            f"lowering_config = #iree_gpu.lowering_config<{{{sizes}}}>, "
            "translation_info = #iree_codegen.translation_info<pipeline = "
            f"#iree_gpu.pipeline<TileAndFuse> workgroup_size = [{self.threads}, 1, 1] "
            f"subgroup_size = {WARP}>>"
        )


def gpu_tiles(nest: LoopNest, hardware: Hardware) -> Iterator[GpuTile]:
    """All tiles that divide a product and that the hardware can have."""
    if hardware.kind != "gpu":
        raise UsageError(f"{hardware.name} is no GPU", hint="fewbit/hardware has h200")
    roles = _roles(nest)
    rows, columns = nest.extents[roles.rows[-1]], nest.extents[roles.columns]
    depth = nest.extents[roles.inner or 0]
    for m, n, tm, tn, k in product(GROUPS, GROUPS, THREADS, THREADS, DEPTHS):
        tile = GpuTile((m, n), (tm, tn), k)
        divides = rows % m == 0 and columns % n == 0 and depth % k == 0
        if divides and tile.problem(nest, hardware) is None:
            yield tile


def _roles(nest: LoopNest) -> Roles:
    roles = roles_of(nest)
    if roles is None or not roles.rows or roles.inner is None:
        raise UsageError("only products of two matrices have tiles on a GPU")
    return roles


def _spread(nest: LoopNest, sizes: dict[int | None, int]) -> list[int]:
    return [sizes.get(loop, 0) for loop in range(len(nest.loops))]
