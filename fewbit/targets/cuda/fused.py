"""A layer whose blocks begin with loops, as one step of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fewbit.targets.cuda.layers import Call
from fewbit.targets.cuda.memory import Memory
from fewbit.targets.cuda.nest import Nest


@dataclass(frozen=True)
class Fused:
    """A layer, and the loops that its blocks begin with."""

    nests: list[Nest]
    call: Call

    @property
    def reads(self) -> list[Memory]:
        return [*(m for nest in self.nests for m in nest.reads), *self.call.reads]

    @property
    def writes(self) -> list[Memory]:
        return [*(m for nest in self.nests for m in nest.writes), *self.call.writes]

    def move(self, place: Callable[[Memory], Memory]) -> Fused:
        """Return the same on memory that lies elsewhere."""
        return Fused([nest.move(place) for nest in self.nests], self.call.move(place))
