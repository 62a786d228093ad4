"""Cycles of a program that a simulator ran: instructions of each class, times what they cost.

This needs no shapes, so it also covers what is between layers. Costs of integer instructions
follow from the fit of matmuls, whose kernels are known instruction by instruction. Those of
floats, divisions and jumps are assumed: no published table has enough of them.

A line that is not in the data cache costs `MISS`. The core without caches never waits so: its
memory answers in the next cycle, which is as fast as a hit of *small*, whose pipeline it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fewbit.cost.cycles.estimate import CACHES, Estimate
from fewbit.errors import UsageError

ASSUMED = {
    "multiply": 3.0,
    "divide": 18.0,
    "store": 1.0,
    "jump": 3.0,
    "float": 4.0,
    "float-divide": 20.0,
    "float-store": 1.0,
    "coprocessor": 1.0,
    "system": 5.0,
}

MISS = 21.0
"""Cycles to fetch a line: its 16 words, and a few to begin. Fits say 19 to 23, on both cores."""

PIPELINES = {"small": "small", "high": "high", "cacheless": "small"}

INTEGER: Mapping[str, Mapping[str, float]] = {
    "small": {"alu": 1.0, "load": 1.6, "dot": 2.7, "branch": 1.0, "taken": 1.2},
    "high": {"alu": 0.5, "load": 0.5, "dot": 3.5, "branch": 0.5, "taken": 0.7},
}
"""A dot product waits for its loads, and the addition behind it for the dot product: both waits are
its own. `taken` comes on top of a branch that is taken."""

ERROR = 0.25
"""Expected, not measured: kernels that were scheduled otherwise wait less."""


def instruction_cycles(
    core: str, counts: Mapping[str, int], taken: int = 0, misses: Sequence[int] = ()
) -> Estimate:
    """Return cycles of instructions counted by class ("alu", "load", "dot", ...).

    `misses` are lines that caches of one way, of two, ... fetched; without them, caches always hit.
    """
    if core not in CACHES:
        raise UsageError(f"there is no core '{core}'", hint=f"cores: {', '.join(CACHES)}")
    integer = INTEGER[PIPELINES[core]]
    each = {**ASSUMED, "float-load": integer["load"], **integer}
    total = sum(each[kind] * number for kind, number in counts.items())
    return Estimate(
        total + each["taken"] * taken + MISS * missed(core, misses), ERROR, "instructions by class"
    )


def missed(core: str, misses: Sequence[int]) -> int:
    """Return the misses that a core waits for, from those by number of ways."""
    cache = CACHES[core]
    return misses[cache.ways - 1] if cache is not None and misses else 0
