"""What a recipe costs: sums over layers, each a function of the layer's scheme.

A cost has what it takes whatever is chosen, and for each layer what a scheme adds. So a table of
all units and choices is all that an integer program needs, and the cost of a candidate is exact
without making its program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fewbit.quant.scheme import LayerScheme
from fewbit.search.space import Candidate, Space

Rule = Callable[[str, LayerScheme], float]
"""What a layer of this name adds with this scheme."""


@dataclass(frozen=True)
class Cost:
    """One kind of cost."""

    name: str
    """As budgets call it: `size`, `cycles:high`."""
    unit: str
    """What it is counted in: B, cycles, s."""
    rule: Rule
    layers: tuple[str, ...]
    """Those that add to it."""
    fixed: float = 0.0
    _known: dict[tuple[str, str], float] = field(
        default_factory=dict[tuple[str, str], float], repr=False, compare=False
    )

    def layer(self, name: str, scheme: LayerScheme) -> float:
        """Return what a layer adds."""
        if name not in self.layers:
            return 0.0
        key = name, str(scheme)
        if key not in self._known:
            self._known[key] = self.rule(name, scheme)
        return self._known[key]

    def total(self, schemes: Mapping[str, LayerScheme]) -> float:
        return self.fixed + sum(self.layer(name, scheme) for name, scheme in schemes.items())

    def table(self, space: Space) -> CostTable:
        """Return the cost of each choice of each unit."""
        fixed = self.fixed + sum(self.layer(name, s) for name, s in space.fixed.items())
        rows = tuple(
            tuple(sum(self.layer(each.name, s) for each in unit.layers) for s in unit.choices)
            for unit in space.units
        )
        return CostTable(self.name, self.unit, fixed, rows)


@dataclass(frozen=True)
class CostTable:
    """A cost in the numbers of a space."""

    name: str
    unit: str
    fixed: float
    rows: tuple[tuple[float, ...], ...]
    """For each unit, what each of its choices adds."""

    def of(self, candidate: Sequence[int]) -> float:
        """Return the cost of a candidate."""
        chosen = (row[choice] for row, choice in zip(self.rows, candidate, strict=True))
        return self.fixed + sum(chosen)

    @property
    def least(self) -> float:
        return self.fixed + sum(min(row) for row in self.rows)

    @property
    def most(self) -> float:
        return self.fixed + sum(max(row) for row in self.rows)

    def cheapest(self) -> Candidate:
        """Return a candidate of the least cost; of choices that cost the same, the widest."""
        return tuple(max(range(len(row)), key=lambda i: (-row[i], i)) for row in self.rows)


def amount(value: float, unit: str) -> str:
    """Return a cost as people read it: `10.9 kB`, `1.2 M cycles`, `35.1 us`, `26.5 uJ`."""
    if unit in ("s", "J"):
        for prefix, size in (("", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9)):
            if value >= size or prefix == "n":
                return f"{value / size:.3g} {prefix}{unit}"
    letter = "" if unit == "B" else " "
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {prefix}{letter}{unit}"
    return f"{value:.4g} {unit}"
