"""Cycles of a program that a simulator ran: instructions of each class, times what they cost.

This needs no shapes, so it also covers what is between layers. Costs of integer instructions
follow from the fit of matrix products, whose kernels are known instruction by instruction. Those of
floats, divisions and jumps are assumed: no published table has enough of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from fewbit.analysis.cycles.estimate import CACHES, Estimate
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

INTEGER: Mapping[str, Mapping[str, float]] = {
    "small": {"alu": 1.0, "load": 1.6, "dot": 2.7, "branch": 1.0, "taken": 1.2},
    "high": {"alu": 0.5, "load": 0.5, "dot": 3.5, "branch": 0.5, "taken": 0.7},
    "cacheless": {"alu": 1.0, "load": 1.6, "dot": 2.7, "branch": 1.0, "taken": 1.2},
}
"""A dot product waits for its loads, and the addition behind it for the dot product: both waits are
its own. `taken` comes on top of a branch that is taken."""

ERROR = 0.25
"""Expected, not measured: kernels that were scheduled otherwise wait less."""


def instruction_cycles(core: str, counts: Mapping[str, int], taken: int = 0) -> Estimate:
    """Cycles of instructions counted by class ("alu", "load", "dot", ...); caches always hit."""
    if core not in CACHES:
        raise UsageError(f"there is no core '{core}'", hint=f"cores: {', '.join(CACHES)}")
    each = {**ASSUMED, "float-load": INTEGER[core]["load"], **INTEGER[core]}
    total = sum(each[kind] * number for kind, number in counts.items())
    return Estimate(total + each["taken"] * taken, ERROR, "instructions by class")
