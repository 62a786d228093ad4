"""Optuna's samplers: TPE for one number, NSGA-II for a front of the objective and a cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fewbit.search.evaluation import Evaluated
from fewbit.search.extras import import_extra
from fewbit.search.problem import Problem
from fewbit.search.searchers.searcher import ATTEMPTS, Searcher
from fewbit.search.space import Candidate


class _Sampled(Searcher):
    """A study of Optuna's, told of what was evaluated.

    What a sampler proposes is brought within the limits, and the study is told how good that is: no
    evaluation is spent on what may not be used.
    """

    keeps_proposals = False
    """Whether the study is told under what it proposed, which its next generation is made from."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self.optuna: Any = import_extra("optuna", "optuna")
        self.optuna.logging.set_verbosity(self.optuna.logging.ERROR)
        self.study = self._study()
        self.proposals: dict[Candidate, Any] = {}
        self.distributions = {
            str(number): self.optuna.distributions.CategoricalDistribution(range(len(unit.choices)))
            for number, unit in enumerate(self.space.units)
        }

    def _study(self) -> Any:
        raise NotImplementedError

    def _values(self, evaluated: Evaluated) -> list[float]:
        return [self.problem.rank(evaluated)[0]]

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        for _ in range(count):
            candidate = self._propose(asked)
            if candidate is None:
                break
            asked.append(candidate)
        return asked

    def _propose(self, others: Sequence[Candidate]) -> Candidate | None:
        for _ in range(ATTEMPTS // 10):
            trial = self.study.ask(self.distributions)
            proposed = tuple(trial.params[str(i)] for i in range(len(self.space.units)))
            candidate = self.problem.repair(proposed, self.rng)
            if self.is_new(candidate, others):
                self.proposals[candidate] = trial
                return candidate
            known = self.known.get(candidate) if self.keeps_proposals else None
            self._finish(trial, known)
        return self.draw(others)

    def _finish(self, trial: Any, evaluated: Evaluated | None) -> None:
        if evaluated is None:
            self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)
        else:
            self.study.tell(trial, self._values(evaluated))

    def tell(self, evaluated: Sequence[Evaluated]) -> None:
        super().tell(evaluated)
        for each in evaluated:
            trial = self.proposals.pop(each.candidate, None)
            if trial is not None:
                self._finish(trial, each if self.keeps_proposals else None)
            if trial is not None and self.keeps_proposals:
                continue
            self.study.add_trial(
                self.optuna.trial.create_trial(
                    params={str(i): choice for i, choice in enumerate(each.candidate)},
                    distributions=self.distributions,
                    values=self._values(each),
                )
            )


class Tpe(_Sampled):
    """The tree-structured Parzen estimator."""

    def _study(self) -> Any:
        sampler = self.optuna.samplers.TPESampler(seed=self.seed, multivariate=True)
        return self.optuna.create_study(direction="maximize", sampler=sampler)


class Nsga2(_Sampled):
    """NSGA-II, on the objective and the first cost that has a limit."""

    population = 12
    keeps_proposals = True

    def _study(self) -> Any:
        sampler = self.optuna.samplers.NSGAIISampler(
            population_size=self.population, seed=self.seed
        )
        return self.optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)

    def _values(self, evaluated: Evaluated) -> list[float]:
        limits = self.problem.bounded or list(self.problem.limits)
        return [self.problem.rank(evaluated)[0], limits[0].table.of(evaluated.candidate)]
