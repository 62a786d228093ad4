"""Cycles of a layer on a VexiiRiscv core with MiCo's dot products: counts times what each costs.

What each count costs was fitted to published measurements, with no cost negative, or derived from
such a fit where there are no measurements; `coefficients.toml` says which, and how far off it was
on shapes that were held out, by size and width. `benchmarks/fit_cycles.py` wrote it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fewbit.cost.cycles.cache import Cache
from fewbit.cost.cycles.counts import Counts, count
from fewbit.cost.cycles.errors import Errors, size_of
from fewbit.cost.cycles.shapes import Conv2d, Linear, Pool, Shape
from fewbit.errors import UsageError, WidthError

CACHES: Mapping[str, Cache | None] = {"small": Cache(1), "high": Cache(2), "cacheless": None}
"""The cores, with their data caches."""

RELEASES = ("2025", "2026")
"""MiCo's library: kernels in assembly, then in C; rounding became an instruction in between."""

WIDTHS = (1, 2, 4, 8)
"""Widths that have a dot product; others are stored in the next wider one."""


@dataclass(frozen=True)
class Estimate:
    """Cycles, and how far off such an estimate is on average, as a fraction."""

    cycles: float
    error: float
    """The mean over layers of this size and width, where it is known for these."""
    source: str
    """What the costs were fitted to, or derived from."""


@dataclass(frozen=True)
class Costs:
    """Cycles of one of each count, of one kind of layer on one core."""

    each: Mapping[str, float]
    error: float
    """The mean over all layers of the table that it was measured on."""
    source: str
    errors: Errors | None = None
    """The same by size and width, where it was measured."""

    def cycles(self, counts: Counts) -> float:
        """Return the sum over all counts."""
        return sum(self.each.get(name, 0.0) * number for name, number in counts.items())

    def estimate(self, counts: Counts, size: int, bits: int) -> Estimate:
        """Return the cycles of a layer of this size, whose wider operand has so many bits."""
        if self.errors is None:
            return Estimate(self.cycles(counts), self.error, self.source)
        known = "" if self.errors.measured[size] else "; no layers of this size were measured"
        error = self.errors.at(size, bits)
        return Estimate(self.cycles(counts), error, f"{self.source}{known}")


def cycles(
    core: str, shape: Shape, act_bits: int = 8, weight_bits: int = 8, release: str = "2026"
) -> Estimate:
    """Return what a layer takes on a core, for activations and weights of 1 to 8 bits."""
    costs = costs_of(core, kind_of(shape), release)
    bits = stored_bits(act_bits), stored_bits(weight_bits)
    return costs.estimate(count(shape, *bits, CACHES[core]), size_of(shape), max(bits))


def costs_of(core: str, kind: str, release: str = "2026") -> Costs:
    """Return the costs of a kind of layer: matmul, linear, conv2d, avgpool or maxpool."""
    if core not in CACHES:
        raise UsageError(f"there is no core '{core}'", hint=f"cores: {', '.join(CACHES)}")
    if release not in RELEASES:
        raise UsageError(
            f"there is no release '{release}'", hint=f"releases: {', '.join(RELEASES)}"
        )
    entry = _coefficients()[core][release][kind]
    cells = tuple(tuple(row) for row in entry.get("errors", ()))
    errors = Errors(cells, tuple(entry["measured"])) if cells else None
    return Costs(entry["cycles"], entry["error"], entry["source"], errors)


def stored_bits(bits: int) -> int:
    """Return the width that an operand is stored in."""
    if not 1 <= bits <= WIDTHS[-1]:
        raise WidthError(f"there are no dot products of {bits} bits", hint="widths are 1 to 8")
    return next(width for width in WIDTHS if width >= bits)


def kind_of(shape: Shape) -> str:
    """Return the name under which a shape's costs are listed."""
    match shape:
        case Linear():
            return "linear"
        case Conv2d():
            return "conv2d"
        case Pool(maximum=maximum):
            return "maxpool" if maximum else "avgpool"
        case _:
            return "matmul"


@cache
def _coefficients() -> dict[str, Any]:
    text = (files("fewbit.cost.cycles") / "coefficients.toml").read_text()
    return tomllib.loads(text)
