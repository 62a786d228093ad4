"""Loops that follow each other as one kernel, because a launch takes longer than a small loop.

Loops of few threads are computed by one block, in their order, with barriers between those that
depend on each other. Loops that have nothing to do with each other are parts of one grid, whatever
their size. Each stays the function that it would be as a kernel, but for its pointers, which may
now meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from fewbit.targets.cuda.fused import Fused
from fewbit.targets.cuda.layers import Call
from fewbit.targets.cuda.nest import BLOCK, Nest

Step = Nest | Call | Fused

SMALL = 4096
"""Threads up to which one block is enough…"""
LITTLE = 1 << 14
"""…and turns of loops: with more, a launch is shorter."""
LARGEST_BLOCK = 1024
MOST = 32
"""Loops in one kernel."""


def join_loops(steps: Sequence[Step]) -> list[Step]:
    """Return the steps, with neighbouring loops joined."""
    joined: list[Step] = []
    at = 0
    while at < len(steps):
        small, apart = _in_order(steps[at:]), _side_by_side(steps[at:])
        if len(small) > 1:
            joined.append(_sequence(small))
        elif len(apart) > 1:
            joined.append(_grid(apart))
        else:
            joined.append(steps[at])
        at += max(1, len(small) if len(small) > 1 else len(apart))
    return joined


def is_small(nest: Nest) -> bool:
    """Whether one block is enough."""
    return nest.threads <= SMALL and nest.work <= LITTLE


def _in_order(steps: Sequence[Step]) -> list[Nest]:
    """Return small loops that come first."""
    joined: list[Nest] = []
    for step in steps[:MOST]:
        if not isinstance(step, Nest) or not is_small(step):
            break
        joined.append(step)
    return joined


def _side_by_side(steps: Sequence[Step]) -> list[Nest]:
    """Return loops that come first, none of which writes what another uses."""
    joined: list[Nest] = []
    for step in steps[:MOST]:
        if not isinstance(step, Nest) or any(_meet(step, other) for other in joined):
            break
        joined.append(step)
    return joined


def _meet(one: Nest, other: Nest) -> bool:
    pairs = ((one, other), (other, one))
    return any(w.meets(m) for a, b in pairs for w in a.written for m in b.pointers)


def _sequence(nests: list[Nest]) -> Nest:
    """Return one block, in which loops that have nothing to do with each other run side by side."""
    phases = _phases(nests)
    threads = max(sum(map(_whole_warps, phase)) for phase in phases)
    block = min(LARGEST_BLOCK, threads)
    calls, parts = iter(_calls(nests, ["i"] * len(nests))), list[str]()
    for phase in phases:
        first, lines = 0, list[str]()
        for nest in phase:
            start = f"u64 i = FROM({first % block}u)" if first % block else "u64 i = $"
            lines.append(f"  for ({start}; i < {nest.threads}ull; i += WIDTH) {next(calls)};")
            first += _whole_warps(nest)
        parts.append("\n".join(lines))
    return _kernel(nests, "\n  BARRIER;\n".join(parts), block, block, in_order=True)


def _phases(nests: list[Nest]) -> list[list[Nest]]:
    """Return loops in their order; none of a phase writes what another of it uses."""
    phases: list[list[Nest]] = [[]]
    for nest in nests:
        if any(_meet(nest, other) for other in phases[-1]):
            phases.append([])
        phases[-1].append(nest)
    return phases


def _whole_warps(nest: Nest) -> int:
    return -(-nest.threads // 32) * 32


def _grid(nests: list[Nest]) -> Nest:
    """Return a part of the grid for each, in whole blocks."""
    sizes = [-(-nest.threads // BLOCK) * BLOCK for nest in nests]
    first, *ends = accumulate(sizes, initial=0)
    calls = _calls(nests, [f"i - {start}ull" for start in (first, *ends[:-1])])
    parts = [f"  if (i < {end}ull) return {call};" for end, call in zip(ends, calls, strict=True)]
    return _kernel(nests, "\n".join(["  u64 i = $;", *parts]), ends[-1], BLOCK)


def _calls(nests: list[Nest], threads: list[str]) -> list[str]:
    """Return a call of each function, by its thread and its part of the pointers."""
    calls, at = list[str](), 0
    for number, (nest, thread) in enumerate(zip(nests, threads, strict=True)):
        pointers = [f"p{i}" for i in range(at, at + len(nest.pointers))]
        calls.append(f"@_{number}({', '.join([thread, *pointers])})")
        at += len(nest.pointers)
    return calls


def _kernel(nests: list[Nest], body: str, threads: int, block: int, in_order: bool = False) -> Nest:
    return Nest(
        body=f"{body}\n",
        types=[type for nest in nests for type in nest.types],
        threads=threads,
        pointers=[memory for nest in nests for memory in nest.pointers],
        written=[memory for nest in nests for memory in nest.written],
        layer=next((nest.layer for nest in nests if nest.layer), ""),
        read=_read(nests),
        block=block,
        in_order=in_order,
        functions="".join(f"{nest.as_function(f'@_{i}')}\n" for i, nest in enumerate(nests)),
    )


def _read(nests: list[Nest]) -> frozenset[int]:
    starts = accumulate((len(nest.pointers) for nest in nests), initial=0)
    pairs = zip(starts, nests, strict=False)
    return frozenset(start + i for start, nest in pairs for i in nest.read)
