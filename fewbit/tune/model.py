"""What a cost model is: a guess of how long a nest takes, for each of its schedules."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from typing import Protocol

from fewbit.cost.loops import LoopNest
from fewbit.tune.schedule import Schedule


class CostModel(Protocol):
    """Predicts, or measures, the seconds of a schedule."""

    @property
    def name(self) -> str: ...

    def can(self, nest: LoopNest) -> str | None:
        """Return why the model does not know such nests; None where it does."""
        ...

    def seconds(self, nest: LoopNest, schedule: Schedule) -> float: ...


def best(
    model: CostModel, nest: LoopNest, candidates: Iterable[Schedule], count: int
) -> list[Schedule]:
    """Return the schedules that the model thinks fastest, the best first."""
    return nsmallest(count, candidates, key=lambda schedule: model.seconds(nest, schedule))
