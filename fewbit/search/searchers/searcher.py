"""What a searcher is: it is asked for candidates, and told how good they are.

All that is random in one follows from its seed, and nothing in it depends on time. So a search that
is begun again asks for the same candidates, and finds those that were evaluated in the store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from fewbit.search.evaluation import Evaluated
from fewbit.search.problem import Problem
from fewbit.search.space import Candidate

ATTEMPTS = 200


class Searcher(ABC):
    """Decides what is evaluated next."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.space = problem.space
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.known: dict[Candidate, Evaluated] = {}
        """All that it was told, in order."""

    @abstractmethod
    def ask(self, count: int) -> list[Candidate]:
        """Return up to `count` candidates that were not evaluated yet; none to end."""

    def tell(self, evaluated: Sequence[Evaluated]) -> None:
        """Take note of how good candidates are."""
        self.known |= {each.candidate: each for each in evaluated}

    def best(self) -> Evaluated | None:
        return self.problem.best(list(self.known.values()))

    def is_new(self, candidate: Candidate, others: Sequence[Candidate] = ()) -> bool:
        return candidate not in self.known and candidate not in others

    def draw(self, others: Sequence[Candidate] = ()) -> Candidate | None:
        """Return a random candidate within the limits that is new, if one is found."""
        for _ in range(ATTEMPTS):
            candidate = self.problem.random(self.rng)
            if self.is_new(candidate, others):
                return candidate
        return None
