"""The search for the smallest model that still fails.

Each step takes the first smaller model that fails, and begins anew with it. Front ends give large
cuts first, so that most of a model is gone after a few steps; the search ends when no cut of the
model fails. Every cut has fewer ops, results or inputs than its model, so there is an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Model = TypeVar("Model")


def search(
    model: Model,
    cuts: Callable[[Model], Iterable[Model]],
    fails: Callable[[Model], bool],
    tell: Callable[[Model], None] = lambda _: None,
) -> Model:
    """Return a model that fails and of which no cut does; `tell` hears of each that fails."""
    while True:
        for smaller in cuts(model):
            if fails(smaller):
                tell(smaller)
                model = smaller
                break
        else:
            return model


def halves_first(count: int) -> list[int]:
    """Return the numbers below `count`, those in the middle of what is left first."""
    order: list[int] = []
    spans = [(0, count)]
    while spans:
        first, last = spans.pop(0)
        if first < last:
            middle = (first + last) // 2
            order.append(middle)
            spans += [(first, middle), (middle + 1, last)]
    return order
