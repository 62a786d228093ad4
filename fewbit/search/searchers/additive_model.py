"""What candidates lose, as a sum over units that evaluations correct: a Bayesian linear model.

A choice that loses s alone is expected to lose s times a factor in company. The factor has a part
that all units share, one for each unit and one for each choice, so what is learnt of a unit at
3 bits says something of it at 2. An evaluation is the noisier the more it loses: candidates that
are far off decide nothing among good ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fewbit.search.integer_program import Scores
from fewbit.search.space import Candidate

Array = NDArray[np.float64]

SHARED, UNIT, CHOICE = 0.5, 0.6, 0.4
"""How far each part of the factor is from its mean, as a standard deviation."""
NOISE = 0.15
FLOOR = 0.02
"""What every choice but the best may lose, as a part of the median loss."""
SMALLEST_FACTOR, LARGEST_FACTOR = 0.2, 50.0


class AdditiveModel:
    """Losses of choices alone, and what is known of them in company."""

    def __init__(self, alone: Scores) -> None:
        self.sizes = [len(row) for row in alone]
        self.starts = np.cumsum([0, *self.sizes[:-1]])
        flat = np.array([score for row in alone for score in row], np.float64)
        positive = flat[flat > 0]
        floor = FLOOR * float(np.median(positive)) if positive.size else 1e-6
        self.alone = np.maximum(flat, 0.0) + floor
        unit = np.repeat(np.arange(len(self.sizes)), self.sizes)
        same = (unit[:, None] == unit[None, :]).astype(np.float64)
        spread = SHARED**2 + UNIT**2 * same + CHOICE**2 * np.eye(len(flat))
        self.spread = spread * np.outer(self.alone, self.alone)

    def mean(self, known: Mapping[Candidate, float]) -> list[list[float]]:
        """Return what each choice is expected to lose."""
        return self._rows(self._posterior(known)[0])

    def draw(
        self, known: Mapping[Candidate, float], rng: np.random.Generator, boldness: float = 1.0
    ) -> list[list[float]]:
        """Return losses of choices that are as likely as what is known allows.

        With less boldness they are nearer to what is expected, and with 0 they are that.
        """
        mean, spread = self._posterior(known)
        values, vectors = np.linalg.eigh(spread)
        normal = rng.standard_normal(len(mean))
        drawn = mean + boldness * vectors @ (np.sqrt(np.maximum(values, 0.0)) * normal)
        return self._rows(drawn)

    def _posterior(self, known: Mapping[Candidate, float]) -> tuple[Array, Array]:
        if not known:
            return self.alone, self.spread
        x = np.stack([self._one_hot(candidate) for candidate in known])
        y = np.array(list(known.values()))
        sums = x @ self.alone
        factor = float(np.clip(np.median(y / sums), SMALLEST_FACTOR, LARGEST_FACTOR))
        mean, spread = factor * self.alone, factor**2 * self.spread
        noise = np.square(NOISE * np.abs(y) + NOISE * float(np.abs(y).min()) + 1e-9)
        solved = _solve(x @ spread @ x.T + np.diag(noise), x @ spread)
        gain = solved.transpose()
        return mean + gain @ (y - x @ mean), spread - gain @ (x @ spread)

    def _one_hot(self, candidate: Candidate) -> Array:
        row = np.zeros(len(self.alone))
        row[self.starts + np.array(candidate)] = 1.0
        return row

    def _rows(self, flat: Array) -> list[list[float]]:
        pairs = zip(self.starts, self.sizes, strict=True)
        return [[float(x) for x in flat[start : start + size]] for start, size in pairs]


def _solve(matrix: Array, right: Array) -> Array:
    # numpy leaves the type of its result open.
    return cast(Any, np.linalg).solve(matrix, right)
