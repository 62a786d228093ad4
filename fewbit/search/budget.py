"""Budgets: how much of a cost a recipe may take, as people write it.

`size=0.25x` is a part of what the model takes with 8 bits everywhere, `size=20kB` an absolute
number, and `size=w3a8` as much as that recipe takes. In Python a number stands for a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from fewbit.errors import Error, UsageError
from fewbit.quant.recipe import Recipe
from fewbit.quant.scheme import LayerScheme
from fewbit.search.costs import Cost, CostTable, amount
from fewbit.search.space import Candidate, Space

COSTS = ("size", "memory", "bops", "cbops", "cycles", "energy", "latency")
"""What can be limited."""
ON_MACHINES = ("cycles", "energy")
"""Costs behind which, and a colon, may stand a machine of the target."""
_LARGE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LITTLE = {"m": 1e-3, "u": 1e-6, "n": 1e-9}
_UNITS = {"size": "B", "memory": "B", "latency": "s", "energy": "J"}
_FRACTIONS = ("s", "J")
"""Units of what is less than one."""
_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(.*)")
_TINY = 1e-9
"""What two sums of the same numbers may differ by, as a part."""

BudgetsLike = Mapping[str, float | int | str] | Sequence[str]


@dataclass(frozen=True)
class Budget:
    """A cost and its limit, as it was asked for."""

    cost: str
    limit: str
    """`0.25x`, `20kB`, or a recipe."""

    @staticmethod
    def parse(text: str) -> Budget:
        name, equals, limit = (part.strip() for part in text.partition("="))
        if not (name and equals and limit):
            raise UsageError(
                f"'{text}' is no budget", hint="write size=0.25x, size=20kB, or size=w3a8"
            )
        return Budget(check_cost(name), limit)

    def resolve(self, cost: Cost, space: Space, baseline: float) -> float:
        """Return the limit as a number, of what `baseline` is with 8 bits everywhere."""
        if self.limit.endswith("x") and (part := _number(self.limit[:-1])) is not None:
            return part * baseline
        if (match := _NUMBER.fullmatch(self.limit)) is not None:
            return float(match[1]) * self._unit(match[2])
        try:
            recipe = Recipe.of(self.limit)
        except Error as error:
            raise UsageError(
                f"'{self.limit}' is no limit of {self.cost}",
                hint="write a part of what 8 bits take (0.25x), an amount (20kB), or a recipe",
            ) from error
        return cost.total(recipe.resolve([*space.names, *space.fixed]))

    def _unit(self, text: str) -> float:
        letter = _UNITS.get(self.cost.partition(":")[0], "")
        prefix = text.removesuffix(letter) if letter else text
        prefixes = {**_LARGE, **_LITTLE} if letter in _FRACTIONS else _LARGE
        if prefix not in prefixes:
            example = {"B": "20kB", "s": "0.5ms", "J": "20uJ"}.get(letter, "1.5M")
            raise UsageError(
                f"'{self.limit}' is no limit of {self.cost}",
                hint=f"write {example}, or 0.25x for a part of what 8 bits take",
            )
        return prefixes[prefix]


def read_budgets(given: BudgetsLike) -> list[Budget]:
    """Return budgets from texts, or from a mapping in which a number is a part of 8 bits."""
    if isinstance(given, Mapping):
        texts = [f"{k}={v}" if isinstance(v, str) else f"{k}={v}x" for k, v in given.items()]
    else:
        texts = [given] if isinstance(given, str) else list(given)
    budgets = [Budget.parse(text) for text in texts]
    names = [budget.cost for budget in budgets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"the budget of {twice} is given twice", hint="keep one of them")
    return budgets


def check_cost(name: str) -> str:
    """Return the name of a cost that there is."""
    kind = name.partition(":")[0]
    if kind in COSTS and (":" not in name or kind in ON_MACHINES):
        return name
    close = get_close_matches(kind, COSTS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"costs are {', '.join(COSTS)}"
    raise UsageError(f"there is no cost '{name}'", hint=hint)


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text.strip())
    return float(match[1]) if match is not None and not match[2] else None


@dataclass(frozen=True)
class Limit:
    """A cost in the numbers of a space, with what 8 bits take, and perhaps a limit."""

    table: CostTable
    baseline: float
    limit: float | None = None

    @property
    def name(self) -> str:
        return self.table.name

    def is_met(self, candidate: Candidate) -> bool:
        return self.allows(self.table.of(candidate))

    def allows(self, value: float) -> bool:
        return self.limit is None or value <= self.limit * (1 + _TINY)

    def room(self, candidate: Sequence[int]) -> float:
        """Return how much more a candidate may cost; less than 0 where it exceeds the limit."""
        assert self.limit is not None
        return self.limit * (1 + _TINY) - self.table.of(candidate)

    @property
    def is_reachable(self) -> bool:
        """Whether some candidate meets the limit."""
        return self.allows(self.table.least)

    def show(self, value: float) -> str:
        """Return an amount, and which part it is of what 8 bits take."""
        part = f" ({value / self.baseline:.3g}x)" if self.baseline else ""
        return f"{amount(value, self.table.unit)}{part}"


def make_limits(costs: Iterable[Cost], budgets: Sequence[Budget], space: Space) -> list[Limit]:
    """Return the limit of each cost that a budget names, then costs without one."""
    wanted = {budget.cost: budget for budget in budgets}
    limits: list[Limit] = []
    for cost in costs:
        budget = wanted.get(cost.name) or wanted.get(cost.name.partition(":")[0])
        baseline = cost.total(eight_bits(space))
        limit = None if budget is None else budget.resolve(cost, space, baseline)
        limits.append(Limit(cost.table(space), baseline, limit))
    return limits


def eight_bits(space: Space) -> dict[str, LayerScheme]:
    """Return the schemes of 8 bits everywhere, but for layers that are kept float."""
    from fewbit.search.space import WIDE

    kept = {name: s for name, s in space.fixed.items() if s.is_float}
    return {**dict.fromkeys([*space.names, *space.fixed], WIDE), **kept}
