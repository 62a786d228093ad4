"""Cycles of a program that a simulator ran: instructions of each class, times what they cost.

This needs no shapes, so it also covers what is between layers. What a class costs was fitted to
MiCo's tables, with its library run on the simulator here; `instructions.toml` has the costs, and
`benchmarks/instruction_costs.py` wrote it.

A line that is not in the data cache costs `MISS`. The core without caches never waits so: its
memory answers in the next cycle, which is as fast as a hit of *small*, whose pipeline it has.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from fewbit.cost.cycles.estimate import CACHES, Estimate
from fewbit.errors import UsageError

ASSUMED = {"coprocessor": 1.0, "system": 5.0}
"""Instructions that no measured layer has."""

MISS = 21.0
"""Cycles to fetch a line: its 16 words, and a few to begin. Fits say 19 to 23, on both cores."""

PIPELINES = {"small": "small", "high": "high", "cacheless": "small"}

ERROR = 0.25
"""Expected of programs of ours, of which none was measured on a core: kernels that are scheduled
otherwise wait less. A kind of MiCo's layers that a fit did not see is 3 to 20 % off."""


def instruction_cycles(
    core: str, counts: Mapping[str, int], taken: int = 0, misses: Sequence[int] = ()
) -> Estimate:
    """Return cycles of instructions counted by class ("alu", "load", "dot", ...).

    `misses` are lines that caches of one way, of two, ... fetched; without them, caches always hit.
    """
    if core not in CACHES:
        raise UsageError(f"there is no core '{core}'", hint=f"cores: {', '.join(CACHES)}")
    each = {**ASSUMED, **_costs()[PIPELINES[core]]}
    total = sum(each[kind] * number for kind, number in counts.items())
    return Estimate(
        total + each["taken"] * taken + MISS * missed(core, misses), ERROR, "instructions by class"
    )


def missed(core: str, misses: Sequence[int]) -> int:
    """Return the misses that a core waits for, from those by number of ways."""
    cache = CACHES[core]
    return misses[cache.ways - 1] if cache is not None and misses else 0


@cache
def _costs() -> dict[str, dict[str, float]]:
    text = (files("fewbit.cost.cycles") / "instructions.toml").read_text()
    return tomllib.loads(text)
