"""How much each layer loses at each width, alone: the others as wide as they may be.

The same numbers say which layer broke a model's accuracy, and what an exact program for bits is
given. A choice that has both fewer bits of the weight and of activations is not run: what the two
lose apart is added. All else is evaluated once, and kept like any other evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10

from fewbit.base.progress import progress
from fewbit.search.evaluation import Evaluator
from fewbit.search.objective import Metrics
from fewbit.search.space import Candidate, Space, Unit, replace_choice


@dataclass(frozen=True)
class Sensitivity:
    """Numbers of every choice of every unit, and those of the widest candidate."""

    space: Space
    widest: Metrics
    rows: tuple[tuple[Metrics, ...], ...]
    """For each unit, those of each of its choices."""

    def losses(self, name: str, larger_is_better: bool = False) -> list[list[float]]:
        """Return how much worse one of the numbers is than that of the widest candidate."""
        sign = -1.0 if larger_is_better else 1.0
        return [[sign * (each[name] - self.widest[name]) for each in row] for row in self.rows]

    def penalties(self, penalty: Callable[[Metrics], float]) -> list[list[float]]:
        base = penalty(self.widest)
        return [[penalty(each) - base for each in row] for row in self.rows]


def single_changes(space: Space) -> list[list[Candidate]]:
    """Return, for each unit and each of its choices, the widest candidate with that choice."""
    widest = space.widest
    return [
        [replace_choice(widest, number, choice) for choice in range(len(unit.choices))]
        for number, unit in enumerate(space.units)
    ]


def measure_sensitivity(space: Space, evaluator: Evaluator) -> Sensitivity:
    """Evaluate the choices of every unit, or add up what their parts lose."""
    changes = single_changes(space)
    parts = [[_parts(unit, choice) for choice in range(len(unit.choices))] for unit in space.units]
    needed = [
        row[choice]
        for row, unit_parts in zip(changes, parts, strict=True)
        for pair in unit_parts
        for choice in pair
    ]
    flat = list(dict.fromkeys([space.widest, *needed]))
    known: dict[Candidate, Metrics] = {}
    with progress("Measuring sensitivity", len(flat)) as step:
        size = max(evaluator.workers, 1)
        for start in range(0, len(flat), size):
            for each in evaluator.evaluate(flat[start : start + size]):
                known[each.candidate] = each.metrics
                step()
    widest = known[space.widest]
    rows = tuple(
        tuple(_add(widest, [known[row[choice]] for choice in pair]) for pair in unit_parts)
        for row, unit_parts in zip(changes, parts, strict=True)
    )
    return Sensitivity(space, widest, rows)


def _parts(unit: Unit, choice: int) -> tuple[int, ...]:
    """Return the choices that together are as this one: of the weight's bits, and of the other."""
    scheme, wide = unit.choices[choice], unit.choices[unit.widest]
    if scheme.act == wide.act:
        return (choice,)
    numbers = {each: number for number, each in enumerate(unit.choices)}
    weight = numbers.get(scheme.model_copy(update={"act": wide.act}))
    act = numbers.get(wide.model_copy(update={"act": scheme.act, "static": scheme.static}))
    if weight is None or act is None or choice == act:
        return (choice,)
    return weight, act


def _add(widest: Metrics, parts: Sequence[Metrics]) -> Metrics:
    """Return what several changes make of the numbers, each as much as alone."""
    if len(parts) == 1:
        return parts[0]
    return {
        name: _add_noise([each[name] for each in parts])
        if name == "sqnr"
        else value + sum(each[name] - value for each in parts)
        for name, value in widest.items()
    }


def _add_noise(decibels: Sequence[float]) -> float:
    return -10 * log10(sum(10 ** (-each / 10) for each in decibels))
