"""Candidates evaluated, once each: looked up, or run and kept.

Several at a time are run by threads: PyTorch and compiled code let go of the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import Protocol

from fewbit import __version__
from fewbit.search.data import Examples
from fewbit.search.objective import Metrics, Objective
from fewbit.search.space import Candidate, Space
from fewbit.search.store import Key, Row, Store
from fewbit.search.subject import Schemes, Subject


class Measure(Protocol):
    """How a candidate is run: as it is, or after training."""

    @property
    def how(self) -> str:
        """What ran it, as it is kept."""
        ...

    def __call__(self, schemes: Schemes, part: Examples) -> tuple[Metrics, int]:
        """Return the numbers, and how many examples were run."""
        ...


@dataclass(frozen=True)
class AsItIs:
    """After rounding, without training."""

    subject: Subject
    objective: Objective

    @property
    def how(self) -> str:
        return self.subject.how

    def __call__(self, schemes: Schemes, part: Examples) -> tuple[Metrics, int]:
        return self.subject.measure(schemes, part, self.objective), len(part)


@dataclass(frozen=True)
class Evaluated:
    """A candidate with its numbers."""

    candidate: Candidate
    metrics: Metrics
    is_new: bool = True


@dataclass
class Evaluator:
    """Runs candidates of one model on one part of the data."""

    space: Space
    model: str
    """The model's hash."""
    store: Store
    measure: Measure
    part: Examples
    objective: Objective
    workers: int = 1
    samples: int = 0
    """Examples that were run, also those of rows that an earlier run made."""
    _data: str = field(default="", init=False)
    _counting: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._data = self.part.hash()

    def evaluate(self, candidates: Sequence[Candidate]) -> list[Evaluated]:
        """Return the numbers of candidates, in their order."""
        if self.workers == 1 or len(candidates) == 1:
            return [self.one(candidate) for candidate in candidates]
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(self.one, candidates))

    def one(self, candidate: Candidate) -> Evaluated:
        row, is_new = self.row(self.space.schemes(candidate))
        return Evaluated(candidate, row.metrics, is_new)

    def row(self, schemes: Schemes) -> tuple[Row, bool]:
        """Return what is known of these schemes, and whether it was found out just now."""
        key = self.key(schemes)
        with self.store.claim(key) as known:
            if known is not None:
                self._count(known.samples)
                return known, False
            start = perf_counter()
            metrics, samples = self.measure(schemes, self.part)
            row = Row(key, metrics, samples, perf_counter() - start)
            self.store.put(row)
        self._count(samples)
        return row, True

    def _count(self, samples: int) -> None:
        with self._counting:
            self.samples += samples

    def key(self, schemes: Schemes) -> Key:
        how = self.measure.how
        if self.objective.measure is not None:
            how += f" {getattr(self.objective.measure, '__name__', 'function')}"
        return Key.of(schemes, self.model, self._data, how, versions())


def versions() -> str:
    """Return what numbers may depend on beside the model and the data."""
    from importlib.metadata import version

    return f"fewbit={__version__} torch={version('torch').partition('+')[0]}"
