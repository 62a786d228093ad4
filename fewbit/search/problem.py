"""What a searcher is given: the space, the limits, and how good candidates are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fewbit.search.budget import Limit
from fewbit.search.evaluation import Evaluated, Evaluator
from fewbit.search.objective import Metrics, Objective
from fewbit.search.space import Candidate, Space, replace_choice

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
    _sensitivity: Sensitivity | None = field(default=None, init=False)

    def is_met(self, candidate: Candidate) -> bool:
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
        while violated := [each for each in self.bounded if not each.is_met(candidate)]:
            row = violated[0].table.rows
            options = [
                (unit, choice)
                for unit, chosen in enumerate(candidate)
                for choice in range(len(row[unit]))
                if row[unit][choice] < row[unit][chosen]
            ]
            if not options:
                return violated[0].table.cheapest()
            candidate = replace_choice(candidate, *_nearest(options, candidate, row, rng))
        return candidate

    def random(self, rng: np.random.Generator) -> Candidate:
        """Return a random candidate within all limits, mostly near them."""
        drawn = [int(rng.integers(len(unit.choices))) for unit in self.space.units]
        candidate = self.repair(tuple(drawn), rng)
        return self.fill(candidate, rng) if rng.random() < CLOSE else candidate

    def fill(self, candidate: Candidate, rng: np.random.Generator) -> Candidate:
        """Give units more bits, in a random order, as long as all limits are met."""
        order: list[int] = rng.permutation(len(candidate)).tolist()
        for unit in order:
            for choice in range(candidate[unit] + 1, len(self.space.units[unit].choices)):
                wider = replace_choice(candidate, unit, choice)
                if self.is_met(wider):
                    candidate = wider
        return candidate


def _nearest(
    options: Sequence[tuple[int, int]],
    candidate: Candidate,
    row: Sequence[Sequence[float]],
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Return the smallest step down of a unit that is chosen at random."""
    units = sorted({unit for unit, _ in options})
    unit = units[int(rng.integers(len(units)))]
    costs = row[unit]
    below = [choice for each, choice in options if each == unit]
    most = max(costs[choice] for choice in below)
    same = [choice for choice in below if costs[choice] == most]
    return unit, same[int(rng.integers(len(same)))]
