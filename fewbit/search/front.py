"""The Pareto front: points that no other point beats in everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def pareto_front(
    points: Iterable[T], cost: Callable[[T], float], value: Callable[[T], tuple[float, ...]]
) -> list[T]:
    """Return the points of which none costs as little and is as good, from the cheapest on.

    Of points that are equal in both, the first is kept.
    """
    ordered = sorted(points, key=lambda each: (cost(each), tuple(-x for x in value(each))))
    front: list[T] = []
    for point in ordered:
        if not front or value(point) > value(front[-1]):
            front.append(point)
    return front
