"""The default: sensitivities, an exact integer program, then real evaluations near the best.

What each choice loses alone is measured once. The integer program finds the choices that lose the
least in sum, within all limits, in milliseconds; its candidates are the first that are evaluated.
Losses do not quite add up, so each evaluation then corrects the sum (`additive_model`), and the
program is solved again, by turns for what the corrected model expects and for what it draws as
likely: near the best candidate at first, farther away when nothing new is near. The last
evaluations go to other points of the front.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fewbit.search.budget import Limit
from fewbit.search.integer_program import Scores, solve
from fewbit.search.problem import Problem
from fewbit.search.searchers.additive_model import AdditiveModel
from fewbit.search.searchers.searcher import Searcher
from fewbit.search.space import Candidate

BOLDNESS = 0.6
"""How far draws are from what is expected, as a part of how uncertain that is."""
NEAR = (2, 3, 5)
"""How many units may differ from the best candidate; the next where nothing new is left."""


class Auto(Searcher):
    """Sensitivities, an integer program, and a model that evaluations correct."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        sensitivity = problem.sensitivity()
        penalties = sensitivity.penalties(problem.objective.penalty)
        self.base = problem.objective.penalty(problem.widest)
        self.scores = [penalties]
        if problem.objective.smooth != "kl" and "kl" in sensitivity.widest:
            self.scores.append(sensitivity.losses("kl"))
        self.model = AdditiveModel(penalties)
        self.for_front = min(problem.front, problem.trials // 3) if problem.bounded else 0
        self._starts = self._first()
        self._points = self._along_the_front()

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        while len(asked) < count:
            candidate = self._next(asked)
            if candidate is None:
                break
            asked.append(candidate)
        return asked

    def _next(self, others: list[Candidate]) -> Candidate | None:
        done = len(self.known) + len(others)
        if not self.problem.bounded or done >= self.problem.trials - self.for_front:
            return self._take(self._points, others) or self._corrected(others)
        return self._take(self._starts, others) or self._corrected(others)

    def _take(self, source: Iterator[Candidate], others: list[Candidate]) -> Candidate | None:
        return next((each for each in source if self.is_new(each, others)), None)

    def _first(self) -> Iterator[Candidate]:
        """Yield the best candidate by each score."""
        for scores in self.scores:
            candidate = solve(scores, self.problem.limits, seed=self.seed)
            if candidate is not None:
                yield candidate

    def _corrected(self, others: list[Candidate]) -> Candidate | None:
        """Return the best candidate by scores that what was evaluated makes likely."""
        best = self.best()
        # By turns what is expected to be best, and what may be.
        is_bold = (len(self.known) + len(others)) % 2 == 1
        scores = self.model.draw(self._losses(), self.rng, BOLDNESS if is_bold else 0.0)
        without = [*self.known, *others]
        for distance in NEAR if best is not None else ():
            assert best is not None
            near = best.candidate, distance
            found = self._solve(scores, without, near)
            if found is not None:
                return found
        return self._solve(scores, without, None)

    def _losses(self) -> dict[Candidate, float]:
        """Return what evaluated candidates lose, beside the widest one."""
        penalty = self.problem.objective.penalty
        return {each: penalty(found.metrics) - self.base for each, found in self.known.items()}

    def _solve(
        self, scores: Scores, without: list[Candidate], near: tuple[Candidate, int] | None
    ) -> Candidate | None:
        return solve(scores, self.problem.limits, without=without, near=near, seed=self.seed)

    def _along_the_front(self) -> Iterator[Candidate]:
        """Yield candidates for limits between the least and the most of a cost."""
        limits = self.problem.limits
        main = next(iter(self.problem.bounded or limits), None)
        if main is None:
            return
        count = self.for_front or self.problem.trials
        scores = self.model.mean(
            {
                c: self.problem.objective.penalty(e.metrics) - self.base
                for c, e in self.known.items()
            }
        )
        for number in range(count):
            part = (number + 0.5) / count
            most = main.table.least + part * (main.table.most - main.table.least)
            moved = [_with_limit(each, most if each is main else None) for each in limits]
            candidate = solve(scores, moved, seed=self.seed)
            if candidate is not None:
                yield candidate


def _with_limit(limit: Limit, most: float | None) -> Limit:
    return replace(limit, limit=most)
