"""Evolution: the best candidates are crossed and mutated, and brought within the limits again."""

from __future__ import annotations

from fewbit.search.searchers.searcher import ATTEMPTS, Searcher
from fewbit.search.space import Candidate

POPULATION = 10
MUTATION = 0.15
"""The chance of a unit to get another choice."""
CROSSOVER = 0.5


class Evolution(Searcher):
    """Keeps the best ones as parents."""

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        for _ in range(count):
            young = len(self.known) + len(asked) < POPULATION
            child = self.draw(asked) if young else self._child(asked)
            if child is None:
                break
            asked.append(child)
        return asked

    def _child(self, others: list[Candidate]) -> Candidate | None:
        parents = self._parents()
        for _ in range(ATTEMPTS):
            first, second = (self._tournament(parents) for _ in range(2))
            mixed = first
            if self.rng.random() < CROSSOVER:
                picks = self.rng.random(len(first)) < 0.5
                mixed = tuple(a if p else b for a, b, p in zip(first, second, picks, strict=True))
            child = self.problem.repair(self._mutate(mixed), self.rng)
            if self.is_new(child, others):
                return child
        return self.draw(others)

    def _parents(self) -> list[Candidate]:
        """Return the best so far, from the best on."""
        inside = [each for each in self.known.values() if self.problem.is_met(each.candidate)]
        inside.sort(key=self.problem.rank, reverse=True)
        return [each.candidate for each in inside[:POPULATION]]

    def _tournament(self, parents: list[Candidate]) -> Candidate:
        return parents[int(self.rng.integers(len(parents), size=2).min())]

    def _mutate(self, candidate: Candidate) -> Candidate:
        sizes = [len(unit.choices) for unit in self.space.units]
        changed = self.rng.random(len(sizes)) < max(MUTATION, 1 / len(sizes))
        return tuple(
            int(self.rng.integers(size)) if change else choice
            for choice, size, change in zip(candidate, sizes, changed, strict=True)
        )
