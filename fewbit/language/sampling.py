"""Choosing the next token from logits: the likeliest, or one drawn from the likely ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewbit.errors import UsageError

Array = np.ndarray[Any, Any]


@dataclass
class Sampler:
    """A temperature of 0 takes the likeliest token; equal seeds give equal choices."""

    temperature: float = 0.0
    top_p: float = 1.0
    """Draw among the likeliest tokens that together are at least as probable as this."""
    seed: int | None = None
    generator: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise UsageError(f"{self.temperature} is no temperature", hint="0 or more")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"{self.top_p} is no share of probability", hint="above 0, at most 1")
        self.generator = np.random.default_rng(self.seed)

    def choose(self, logits: Array) -> int:
        if self.temperature == 0:
            return int(logits.argmax())
        tokens, chances = likely_tokens(logits / self.temperature, self.top_p)
        return int(self.generator.choice(tokens, p=chances))


def likely_tokens(logits: Array, top_p: float) -> tuple[Array, Array]:
    """Return the fewest tokens that are as probable as `top_p` together, and their chances."""
    values = np.exp(logits.astype(np.float64) - logits.max())
    chances = values / values.sum()
    if top_p == 1:
        return np.arange(len(chances)), chances
    order = np.argsort(-chances, kind="stable")
    count = int(np.searchsorted(np.cumsum(chances[order]), top_p)) + 1
    kept = order[:count]
    return kept, chances[kept] / chances[kept].sum()
