"""One score for every choice, and the integer program: the idea of NVIDIA's AutoQuantize.

`kl-lp` takes the divergence of the outputs, `gradient-lp` the loss that a Taylor expansion expects:
the squared gradient of the weight times its squared rounding error, which takes one pass of
gradients in place of one for each choice. What is left of the trials goes to the next best.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.errors import UsageError
from fewbit.search.integer_program import solve
from fewbit.search.problem import Problem
from fewbit.search.searchers.searcher import Searcher
from fewbit.search.space import Candidate


class _OneScore(Searcher):
    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.scores = self._score()

    def _score(self) -> Sequence[Sequence[float]]:
        raise NotImplementedError

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        for _ in range(count):
            without = [*self.known, *asked]
            found = solve(self.scores, self.problem.limits, without=without, seed=self.seed)
            if found is None:
                break
            asked.append(found)
        return asked


class DivergenceScore(_OneScore):
    """The divergence of outputs that each choice makes alone."""

    def _score(self) -> Sequence[Sequence[float]]:
        sensitivity = self.problem.sensitivity()
        if "kl" not in sensitivity.widest:
            return sensitivity.penalties(self.problem.objective.penalty)
        return sensitivity.losses("kl")


class GradientScore(_OneScore):
    """What the gradient of the loss expects each choice to lose."""

    def _score(self) -> Sequence[Sequence[float]]:
        from fewbit.search.torch_subject import TorchSubject

        subject = self.problem.subject
        if not isinstance(subject, TorchSubject):
            raise UsageError(
                "gradient-lp is for PyTorch modules, whose gradients are known",
                hint="choose --searcher kl-lp or auto",
            )
        return subject.gradient_scores(self.space, self.problem.evaluator.part)
