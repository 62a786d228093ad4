"""Surrogate models: what is known predicts what is not, and the most promising is tried.

`mico` is the search of MiCo from its description: a random forest, whose trees' mean and spread
give an upper confidence bound (the spread counts for less the more is known), over a thousand
candidates near the limits that are crossed and mutated from the best ones; how near widens as the
search goes on. `gp` is the same with a Gaussian process.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.search.extras import import_extra
from fewbit.search.searchers.searcher import ATTEMPTS, Searcher
from fewbit.search.space import Candidate

Array = NDArray[np.float64]

POOL = 1000
CROSSOVER, MUTATION = 0.25, 0.1
NARROW, WIDE = 0.1, 0.3
"""How far below a limit candidates may be, at the beginning and at the end."""
LEAST_INITIAL = 8
TREES = 100


class Surrogate(Searcher):
    """Tries what a model of the candidates bounds the highest."""

    weight = 0.5
    """How much the spread counts beside the mean."""

    @property
    def initial(self) -> int:
        """How many candidates are drawn before there is a model."""
        return max(LEAST_INITIAL, min(2 * len(self.space.units), self.problem.trials // 4))

    def ask(self, count: int) -> list[Candidate]:
        asked: list[Candidate] = []
        if len(self.known) < self.initial:
            first = self._spread(self.initial)
            asked = [each for each in first if self.is_new(each)][:count]
            if asked:
                return asked
        pool = self._pool()
        if not pool:
            candidate = self.draw()
            return [] if candidate is None else [candidate]
        bounds = self._bounds(pool)
        order = np.argsort(-bounds, kind="stable")
        return [pool[i] for i in order[:count]]

    def _spread(self, count: int) -> list[Candidate]:
        """Return candidates in which every choice of a unit comes about equally often."""
        rng = np.random.default_rng(self.seed)
        columns: list[NDArray[np.int64]] = []
        for unit in self.space.units:
            columns.append(rng.permutation(np.arange(count) * len(unit.choices) // count))
        rows = np.stack(columns, axis=1)
        repaired = [self.problem.repair(tuple(int(x) for x in row), rng) for row in rows]
        return list(dict.fromkeys(repaired))

    def _pool(self) -> list[Candidate]:
        """Return new candidates near the limits, from the best ones and at random."""
        share = min(len(self.known) / max(self.problem.trials, 1), 1.0)
        reach = NARROW + (WIDE - NARROW) * share
        parents = sorted(
            (each for each in self.known.values() if self.problem.is_met(each.candidate)),
            key=self.problem.rank,
            reverse=True,
        )[: max(2, len(self.known) // 4)]
        pool: dict[Candidate, None] = {}
        for _ in range(2 * POOL):
            if len(pool) == POOL:
                break
            candidate = self._offspring([each.candidate for each in parents])
            if self.is_new(candidate) and self._is_near(candidate, reach):
                pool[candidate] = None
        for _ in range(0 if pool else ATTEMPTS):
            candidate = self.problem.random(self.rng)
            if self.is_new(candidate):
                pool[candidate] = None
        return list(pool)

    def _offspring(self, parents: list[Candidate]) -> Candidate:
        if not parents or self.rng.random() < 0.5:
            return self.problem.random(self.rng)
        child = parents[int(self.rng.integers(len(parents)))]
        if self.rng.random() < CROSSOVER:
            other = parents[int(self.rng.integers(len(parents)))]
            picks = self.rng.random(len(child)) < 0.5
            child = tuple(a if p else b for a, b, p in zip(child, other, picks, strict=True))
        draws: list[float] = self.rng.random(2 * len(child)).tolist()
        chance = max(MUTATION, 1 / len(child))
        mutated = [
            int(draws[len(child) + i] * len(unit.choices)) if draws[i] < chance else child[i]
            for i, unit in enumerate(self.space.units)
        ]
        return self.problem.repair(tuple(mutated), self.rng)

    def _is_near(self, candidate: Candidate, reach: float) -> bool:
        used = [
            limit.table.of(candidate) / limit.limit for limit in self.problem.bounded if limit.limit
        ]
        return not used or max(used) >= 1 - reach

    def _features(self, candidates: list[Candidate]) -> Array:
        """Return widths of weights and activations, alone and times the unit's part of all MACs."""
        macs = np.array([sum(each.macs for each in u.layers) for u in self.space.units], np.float64)
        part = macs / max(macs.sum(), 1.0)
        rows: list[Array] = []
        for candidate in candidates:
            chosen = [u.choices[i] for u, i in zip(self.space.units, candidate, strict=True)]
            w = np.array([32.0 if s.weight is None else s.weight.precision for s in chosen])
            a = np.array([32.0 if s.act is None else s.act.precision for s in chosen])
            rule = np.array([float(s.mode == "mse") for s in chosen])
            rows.append(np.concatenate([w, a, w * part, a * part, rule]))
        return np.stack(rows)

    def _bounds(self, pool: list[Candidate]) -> Array:
        known = list(self.known)
        values = np.array([self.problem.rank(self.known[each])[0] for each in known])
        mean, spread = self._predict(self._features(known), values, self._features(pool))
        return mean + self._beta() * spread

    def _beta(self) -> float:
        return self.weight

    @abstractmethod
    def _predict(self, x: Array, y: Array, asked: Array) -> tuple[Array, Array]:
        """Return what is expected of candidates, and how uncertain that is."""


class ForestBounds(Surrogate):
    """A random forest."""

    def _beta(self) -> float:
        return self.weight * self.initial / max(len(self.known), 1)

    def _predict(self, x: Array, y: Array, asked: Array) -> tuple[Array, Array]:
        ensemble: Any = import_extra("sklearn.ensemble", "scikit-learn")
        forest = ensemble.RandomForestRegressor(TREES, random_state=self.seed).fit(x, y)
        trees = np.stack([tree.predict(asked) for tree in forest.estimators_])
        return trees.mean(axis=0), trees.std(axis=0)


class GaussianProcess(Surrogate):
    """A Gaussian process."""

    weight = 0.1

    def _predict(self, x: Array, y: Array, asked: Array) -> tuple[Array, Array]:
        process: Any = import_extra("sklearn.gaussian_process", "scikit-learn")
        kernels: Any = import_extra("sklearn.gaussian_process.kernels", "scikit-learn")
        low, span = x.min(axis=0), np.ptp(x, axis=0)
        span[span == 0] = 1.0
        kernel = kernels.Matern(nu=2.5) + kernels.WhiteKernel(1e-2, (1e-6, 1.0))
        model = process.GaussianProcessRegressor(kernel, normalize_y=True, random_state=self.seed)
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit((x - low) / span, y)
            mean, spread = model.predict((asked - low) / span, return_std=True)
        return mean, spread
