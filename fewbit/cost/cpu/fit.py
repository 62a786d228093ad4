"""Coefficients from measured times: least squares of relative errors, none of them negative.

Time is a root of a sum of powers of sums, so it is fitted by Gauss and Newton: in each round,
computing and reading count by how much the time follows each, and what remains is linear. Since
time grows in proportion to its coefficients, no constant is left over. Calls that are far off,
because something disturbed them, count less; and each coefficient is drawn a little to its default,
which decides where calls do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fewbit.cost.cpu.calibration import POWER, Accuracy, Read
from fewbit.cost.cpu.defaults import CLOCK, cycles_of, factor_of
from fewbit.cost.cpu.nnls import nnls
from fewbit.cost.cpu.work import Work

ROUNDS = 24
FAR = 0.15
"""A relative error from which on a call counts less."""
PULL = 0.1
"""What a coefficient twice its default weighs: as much as a call that is off by a tenth."""

Floats = NDArray[np.float64]


def fit(works: Sequence[Work], seconds: Sequence[float], read: Read) -> dict[str, float]:
    """Return the coefficient of each term that occurs."""
    terms = sorted({term for work in works for term in work.counts})
    streams = sorted({stream.term for work in works for stream in work.streams})
    starts = np.array([*(cycles_of(t) / CLOCK for t in terms), *map(factor_of, streams)])
    times = np.array(seconds)
    counts = np.array([[work.counts.get(term, 0.0) for term in terms] for work in works])
    bytes_ = np.array([[_reading(work, term, read) for term in streams] for work in works])
    split = len(terms)
    relative = np.concatenate([counts, bytes_], 1) * starts / times[:, None]
    solution, weight = np.ones(len(starts)), np.ones(len(times))
    for _ in range(ROUNDS):
        computing = relative[:, :split] @ solution[:split]
        reading = relative[:, split:] @ solution[split:]
        total = np.maximum((computing**POWER + reading**POWER) ** (1 / POWER), 1e-9)
        slopes = np.concatenate(
            [
                relative[:, :split] * ((computing / total) ** (POWER - 1))[:, None],
                relative[:, split:] * ((reading / total) ** (POWER - 1))[:, None],
            ],
            1,
        )
        weight = np.sqrt(np.minimum(1.0, FAR / np.maximum(np.abs(total - 1), 1e-9)))
        pull = PULL * np.eye(len(starts))
        system = np.concatenate([slopes * weight[:, None], pull])
        better = nnls(system, np.concatenate([weight, np.full(len(starts), PULL)]))
        solution = (solution + better) / 2
    return dict(zip([*terms, *streams], (solution * starts).tolist(), strict=True))


def _reading(work: Work, term: str, read: Read) -> float:
    return sum(s.bytes * read(s.footprint) for s in work.streams if s.term == term)


def accuracy(predicted: Sequence[float], measured: Sequence[float]) -> Accuracy:
    errors = np.abs(np.array(predicted) / np.array(measured) - 1)
    return Accuracy(
        calls=len(errors),
        median=float(np.median(errors)),
        ninth_decile=float(np.quantile(errors, 0.9)),
        within_fifth=float(np.mean(errors <= 0.2)),
    )
