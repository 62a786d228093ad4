"""What a searcher is given: the space, the limits, and how good candidates are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fewbit.search.budget import Limit
from fewbit.search.evaluation import Evaluated, Evaluator
from fewbit.search.objective import Metrics, Objective
from fewbit.search.space import Candidate, Space

if TYPE_CHECKING:
    from fewbit.search.sensitivity import Sensitivity
    from fewbit.search.subject import Subject

CLOSE = 0.9
"""Random candidates that use less of a limit than this are given more bits where they may be."""


@dataclass
class Problem:
    """A space with limits, and what evaluates candidates."""

    space: Space
    limits: Sequence[Limit]
    objective: Objective
    evaluator: Evaluator
    probe: Evaluator
    """What sensitivities are measured with: without training, and on fewer examples."""
    widest: Metrics
    """Numbers of the widest candidate, on all examples."""
    subject: Subject
    trials: int
    front: int = 0
    """Points of the front beside the best one that are looked for."""
    exceeding: Collection[Candidate] = ()
    """Candidates that turned out to exceed a limit."""
    _sensitivity: Sensitivity | None = field(default=None, init=False)

    def is_met(self, candidate: Candidate) -> bool:
        return candidate not in self.exceeding and self.is_within(candidate)

    def is_within(self, candidate: Candidate) -> bool:
        """Return whether a candidate meets all limits, as far as costs of layers tell."""
        return all(limit.is_met(candidate) for limit in self.limits)

    @property
    def bounded(self) -> list[Limit]:
        return [limit for limit in self.limits if limit.limit is not None]

    def rank(self, evaluated: Evaluated) -> tuple[float, float]:
        """Return what candidates are compared by: larger is better."""
        return self.objective.value(evaluated.metrics)

    def best(self, evaluated: Sequence[Evaluated]) -> Evaluated | None:
        """Return the best that is within all limits; of equal ones, the first."""
        inside = [each for each in evaluated if self.is_met(each.candidate)]
        return max(inside, key=self.rank) if inside else None

    def sensitivity(self) -> Sensitivity:
        """Return how much each choice of each unit costs alone, measured when first asked for."""
        from fewbit.search.sensitivity import measure_sensitivity

        if self._sensitivity is None:
            self._sensitivity = measure_sensitivity(self.space, self.probe)
        return self._sensitivity

    def repair(self, candidate: Candidate, rng: np.random.Generator) -> Candidate:
        """Return a candidate within all limits near a given one: bits are taken at random."""
        chosen = list(candidate)
        for limit in self.bounded:
            room = limit.room(chosen)
            lower = _lower_choices(limit)
            while room < 0:
                units = [unit for unit, choice in enumerate(chosen) if lower[unit][choice]]
                if not units:
                    return limit.table.cheapest()
                unit = units[int(rng.random() * len(units))]
                options = lower[unit][chosen[unit]]
                choice = options[int(rng.random() * len(options))]
                row = limit.table.rows[unit]
                room += row[chosen[unit]] - row[choice]
                chosen[unit] = choice
        repaired = tuple(chosen)
        # What one limit asks for may break another: bits that are taken are never given back.
        return repaired if self.is_within(repaired) else self.repair(repaired, rng)

    def random(self, rng: np.random.Generator) -> Candidate:
        """Return a random candidate within all limits, mostly near them."""
        drawn = [int(rng.random() * len(unit.choices)) for unit in self.space.units]
        candidate = self.repair(tuple(drawn), rng)
        return self.fill(candidate, rng) if rng.random() < CLOSE else candidate

    def fill(self, candidate: Candidate, rng: np.random.Generator) -> Candidate:
        """Give units more bits, in a random order, as long as all limits are met."""
        chosen = list(candidate)
        rows = [limit.table.rows for limit in self.bounded]
        rooms: list[float] = [limit.room(chosen) for limit in self.bounded]
        order: list[int] = rng.permutation(len(chosen)).tolist()
        for unit in order:
            for choice in range(len(self.space.units[unit].choices) - 1, chosen[unit], -1):
                more: list[float] = [each[unit][choice] - each[unit][chosen[unit]] for each in rows]
                if all(x <= room for x, room in zip(more, rooms, strict=True)):
                    chosen[unit] = choice
                    rooms = [room - x for x, room in zip(more, rooms, strict=True)]
                    break
        return tuple(chosen)


@lru_cache
def _lower_choices(limit: Limit) -> list[list[list[int]]]:
    """Return, for each choice of each unit, those that cost the next less."""
    table: list[list[list[int]]] = []
    for row in limit.table.rows:
        below = [max((c for c in row if c < cost), default=None) for cost in row]
        table.append([[i for i, c in enumerate(row) if c == next_cost] for next_cost in below])
    return table
