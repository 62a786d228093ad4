"""Random candidates within the limits: what every other searcher is to be better than."""

from __future__ import annotations

from fewbit.search.searchers.searcher import Searcher
from fewbit.search.space import Candidate


class Random(Searcher):
    """Draws candidates near the limits."""

    def ask(self, count: int) -> list[Candidate]:
        drawn: list[Candidate] = []
        for _ in range(count):
            candidate = self.draw(drawn)
            if candidate is None:
                break
            drawn.append(candidate)
        return drawn
