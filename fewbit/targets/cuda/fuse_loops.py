"""Small loops that make a layer's input as the beginning of the layer's own kernel.

A launch takes longer than the loops that quantize a row, and every block of a layer of few rows
reads all of that row. So every block computes it for itself, in shared memory, by the same
arithmetic in the same order; what others read later is written by the first block alone. What a
block reads must not change while another one is late: no loop of these writes what one has read
from outside, and results have places of their own (see `arena_values`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.cached_attention import CachedAttention
from fewbit.kernels.cuda.few_bit import FewBitMatmul
from fewbit.kernels.cuda.few_bit_fused import fused_config
from fewbit.targets.cuda.arena_values import ArenaValues
from fewbit.targets.cuda.fused import Fused
from fewbit.targets.cuda.join_loops import MOST, Step, is_small
from fewbit.targets.cuda.layers import Call
from fewbit.targets.cuda.memory import Memory
from fewbit.targets.cuda.nest import Nest

SHARED: dict[str, tuple[str, ...]] = {"few_bit": ("x", "row_scale"), "cached_attention": ("q",)}
"""What kernels can take from shared memory; the first of it they must."""
MOST_SHARED = 48 * 1024
"""Bytes of what loops make for a layer."""

Place = int | str


def fuse_loops(steps: Sequence[Step], values: ArenaValues, arch: Arch) -> list[Step]:
    """Return the steps, with loops fused into the layers that they are followed by."""
    fused: list[Step] = []
    lives, extents = values.lifetimes(steps), values.extents()
    for at, step in enumerate(steps):
        if not isinstance(step, Call) or step.kind not in SHARED or not _takes(step, arch):
            fused.append(step)
            continue
        loops = _loops_before(fused)
        start = at - len(loops)
        kept, apart = _Split(values, step).split(loops)
        made = {v for nest in kept for m in nest.writes if (v := values.of(m))}
        size = sum(extents[v][1] - extents[v][0] for v in made)
        begins = all(lives[v][0] >= start for v in made) and not any(
            values.of(m) in made for nest in apart for m in (*nest.reads, *nest.writes)
        )
        if (
            not kept
            or not begins
            or size > min(MOST_SHARED, arch.shared // 4)
            or not _is_safe(kept, step, values)
        ):
            fused.append(step)
            continue
        fused[len(fused) - len(loops) :] = [*apart, Fused(kept, _settled(step, arch))]
    return fused


def _loops_before(steps: Sequence[Step]) -> list[Nest]:
    """Return the small loops at the end."""
    loops: list[Nest] = []
    for step in reversed(steps[-MOST:]):
        if not isinstance(step, Nest) or not is_small(step):
            break
        loops.append(step)
    return loops[::-1]


def _takes(call: Call, arch: Arch) -> bool:
    problem = call.problem
    if isinstance(problem, FewBitMatmul):
        return fused_config(problem, arch) is not None
    return isinstance(problem, CachedAttention)


def _settled(call: Call, arch: Arch) -> Call:
    """Return the layer with the settings that it has with loops."""
    if not isinstance(call.problem, FewBitMatmul):
        return call
    config = fused_config(call.problem, arch)
    assert config is not None
    return replace(call, config=config)


@dataclass(frozen=True)
class _Split:
    """Finds which loops a layer needs."""

    values: ArenaValues
    call: Call

    def split(self, loops: Sequence[Nest]) -> tuple[list[Nest], list[Nest]]:
        """Return the loops that make the layer's input, and those that can come before them."""
        shared = SHARED[self.call.kind]
        wanted = {self._place(self.call.operands[n]) for n in shared if n in self.call.operands}
        read = {m.buffer for m in self.call.reads if m.buffer not in ("arena", "weights")}
        needed: list[Nest] = []
        for nest in reversed(loops):
            if any(self._place(m) in wanted or m.buffer in read for m in nest.writes):
                needed.append(nest)
                wanted |= {self._place(m) for m in nest.reads}
        kept, apart = list[Nest](), list[Nest]()
        for nest in loops:
            is_free = not any(nest is each for each in needed)
            is_free = is_free and not any(self._meet(nest, each) for each in kept)
            (apart if is_free else kept).append(nest)
        return (kept if needed else []), apart

    def _place(self, memory: Memory) -> Place:
        return place_of(memory, self.values)

    def _meet(self, one: Nest, other: Nest) -> bool:
        sides = (one, other), (other, one)
        return any(
            self._place(w) == self._place(m)
            for a, b in sides
            for w in a.writes
            for m in (*b.reads, *b.writes)
        )


def place_of(memory: Memory, values: ArenaValues) -> Place:
    """Return what two names of the same memory have in common."""
    return values.of(memory) or memory.buffer


def _is_safe(kept: Sequence[Nest], call: Call, values: ArenaValues) -> bool:
    """Whether it makes no difference in which order blocks do all this."""
    shared = SHARED[call.kind]
    y = place_of(call.operands["y"], values)
    others = {place_of(m, values) for n, m in call.operands.items() if n not in shared}
    outside, inside = set[Place](), set[Place]()
    for nest in kept:
        for memory in nest.reads:
            place = place_of(memory, values)
            if place not in inside or isinstance(place, str):
                outside.add(place)
        inside |= {place_of(memory, values) for memory in nest.writes}
    made = {place for place in inside if isinstance(place, int)}
    if inside & outside or y in inside | outside or made & others:
        return False
    x = call.operands[shared[0]]
    return place_of(x, values) in made and x.is_dense and not x.shifts
