"""A dispatch as IREE configured it for a GPU, and its text with other tiles.

One op of a dispatch has tiles there, and all others follow it. Two attributes are replaced as
wholes: the tiles of that op, and how the function is compiled (threads, and what is prefetched).
"""

from __future__ import annotations

import re
from functools import cached_property

from fewbit.cost.loops import LoopNest
from fewbit.cost.loops.read import attribute_of, read_nest
from fewbit.tune.cuda.space import MMA, MMA_DEPTH, GpuMatmul, matmul_of, resources_of, uses_mma
from fewbit.tune.iree.configured import Configured, Tiled
from fewbit.tune.schedule import Schedule, spread

PIPELINES = ("TileAndFuse",)
"""Ways of IREE's to compile a dispatch whose tiles may be chosen."""
TILES = "#iree_gpu.lowering_config<"
INFO = "#iree_codegen.translation_info<"
_PIPELINE = re.compile(r"pipeline = #iree_gpu\.pipeline<(\w+)>")


class GpuDispatch(Configured):
    """A dispatch with the tiles that IREE chose for a GPU."""

    pipelines = PIPELINES

    @cached_property
    def pipeline(self) -> str | None:
        match = _PIPELINE.search(self.text)
        return match[1] if match else None

    @cached_property
    def tiled(self) -> list[Tiled]:
        if self.text.count(TILES) != 1 or self.text.count(INFO) != 1:
            return []
        ops = [op for op in self.module.walk() if attribute_of(op, "lowering_config") is not None]
        nests = [(op, read_nest(op)) for op in ops]
        return [Tiled(op, nest if isinstance(nest, LoopNest) else None, {}) for op, nest in nests]

    @cached_property
    def root(self) -> Tiled | None:
        return self.tiled[0] if len(self.tiled) == 1 else None

    @cached_property
    def reason(self) -> str | None:
        general = super().reason
        if general is not None:
            return general
        if any(loop.dynamic for loop in self.nest.loops):
            return "its sizes depend on a run"
        if self.matmul is None:
            return "it is no matmul or convolution"
        return None

    @cached_property
    def matmul(self) -> GpuMatmul | None:
        """The nest without loops of one step, as a matmul."""
        return matmul_of(self.nest.without_units()[0])

    @property
    def has_mma(self) -> bool:
        return MMA in self.text

    def with_schedule(self, schedule: Schedule) -> str:
        mma = uses_mma(schedule)
        tiles = self._mma_tiles(schedule) if mma else self._thread_tiles(schedule)
        text = _replace_attribute(self.text, TILES, f"{{{tiles}}}")
        return _replace_attribute(text, INFO, self._info(schedule))

    def _info(self, schedule: Schedule) -> str:
        assert self.matmul is not None
        threads = resources_of(self.matmul, schedule).threads
        how = dict(schedule.how)
        options = ""
        if uses_mma(schedule):
            windows = "true" if self.nest.shape_class != "contraction" else "false"
            options = (
                ", {gpu_pipeline_options = #iree_gpu.pipeline_options<"
                f"prefetch_num_stages = {how['stages']}, "
                "no_reduce_shared_memory_bank_conflicts = false, "
                f"use_igemm_convolution = {windows}>}}"
            )
        return (
            f"pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [{threads}, 1, 1] "
            f"subgroup_size = 32{options}"
        )

    def _thread_tiles(self, schedule: Schedule) -> str:
        _, left = self.nest.without_units()
        kinds = [loop.kind for loop in self.nest.loops]
        group = spread(schedule.distribution, left, len(kinds), 1)
        inner = spread(schedule.vector, left, len(kinds), 1)
        levels = {
            "reduction": [n if k == "reduction" else 0 for n, k in zip(inner, kinds, strict=True)],
            "thread": [n if k == "parallel" else 0 for n, k in zip(inner, kinds, strict=True)],
            "workgroup": [n if k == "parallel" else 0 for n, k in zip(group, kinds, strict=True)],
        }
        promoted = ["promote_operands = [0, 1]"] if dict(schedule.how).get("promote") else []
        return ", ".join([*promoted, *(f"{name} = {tile}" for name, tile in levels.items())])

    def _mma_tiles(self, schedule: Schedule) -> str:
        """Return tiles of the matmul's loops: parallel ones, and all reductions as one."""
        extents = [self.nest.extents[i] for i in self.nest.of_kind("parallel")]
        *group, _ = schedule.distribution
        *warp, depth = schedule.vector
        left = [i for i, extent in enumerate(extents) if extent != 1]
        groups = [*spread(group, left, len(extents), 1), 0]
        warps = [*spread(warp, left, len(extents), 1), 0]
        steps = [0] * len(extents) + [depth]
        parts = [
            f"mma_kind = #iree_gpu.mma_layout<{dict(schedule.how)['mma']}>",
            "promote_operands = [0, 1]",
            f"reduction = {steps}",
            f"subgroup = {warps}",
            f"workgroup = {groups}",
        ]
        sums = [self.nest.extents[i] for i in self.nest.of_kind("reduction")]
        whole = all(e % g == 0 for e, g in zip(extents, groups, strict=False))
        total = 1
        for extent in sums:
            total *= extent
        if not whole or total % (depth * MMA_DEPTH):
            parts.insert(1, f"padding = {[*groups[:-1], depth * MMA_DEPTH]}")
        if "convert_acc_gemm" in self.text:
            parts.insert(0, "convert_acc_gemm")
        return ", ".join(parts)


def _replace_attribute(text: str, opening: str, inside: str) -> str:
    """Return the text with another attribute in the place of the one that begins so."""
    start = text.index(opening) + len(opening)
    depth, end = 1, start
    while depth:
        depth += {"<": 1, ">": -1}.get(text[end], 0)
        end += 1
    return text[:start] + inside + text[end - 1 :]
