"""What lies in the arena when: the values of a plan, by the allocations that hold them.

The program's memory was planned for one op after another. Where several become one launch, what
one of its blocks still reads must not be written by another, so places are planned again, for
launches. Allocations through which a step reads what was written through another belong together
and move together; that is found by going through all steps as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from fewbit.passes.memory import arena
from fewbit.targets.cuda.memory import Memory

ALIGNMENT = 64
"""Bytes of a line: allocations begin at multiples of it."""


class Accesses(Protocol):
    """A step, or several that are one launch."""

    @property
    def reads(self) -> list[Memory]: ...
    @property
    def writes(self) -> list[Memory]: ...


@dataclass
class ArenaValues:
    """Values are numbers; what is not in the arena has none."""

    allocations: Sequence[tuple[int, int]]
    """First bytes, and bytes behind."""
    _heads: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self._heads = list(range(len(self.allocations) + 1))

    @staticmethod
    def find(
        allocations: Sequence[tuple[int, int]], steps: Sequence[Accesses]
    ) -> ArenaValues | None:
        """Return the values of steps; None where one of them uses the arena as a whole."""
        if any(begin % ALIGNMENT for begin, _ in allocations):
            return None
        values = ArenaValues(allocations)
        end = max((end for _, end in allocations), default=0)
        owners = np.zeros(-(-end // ALIGNMENT), np.int32)
        for step in steps:
            for memory in (*step.reads, *step.writes):
                if memory.buffer == "arena" and not memory.owner:
                    return None
            for memory in filter(_is_in_arena, step.reads):
                for other in np.unique(owners[values._lines(memory)]):
                    if other:
                        values._join(memory.owner, int(other))
            for memory in filter(_is_in_arena, step.writes):
                owners[values._lines(memory)] = memory.owner
        return values

    def of(self, memory: Memory) -> int:
        """Return the number of a value; 0 outside of the arena."""
        return self._head(memory.owner)

    def extents(self) -> dict[int, tuple[int, int]]:
        """Return the first byte of each value, and the byte behind."""
        found: dict[int, tuple[int, int]] = {}
        for number, (begin, end) in enumerate(self.allocations, 1):
            head = self._head(number)
            low, high = found.get(head, (begin, end))
            found[head] = min(low, begin), max(high, end)
        return found

    def lifetimes(self, steps: Sequence[Accesses]) -> dict[int, tuple[int, int]]:
        """Return the first and the last step that uses each value."""
        found: dict[int, tuple[int, int]] = {}
        for number, step in enumerate(steps):
            for memory in (*step.reads, *step.writes):
                if value := self.of(memory):
                    first, _ = found.get(value, (number, number))
                    found[value] = first, number
        return found

    def plan(
        self, steps: Sequence[Accesses], without: frozenset[int]
    ) -> tuple[dict[int, int], int]:
        """Return by how many bytes each value moves, and the bytes of the arena.

        Values of one step have places of their own. `without` are those that need none.
        """
        extents = self.extents()
        lives = {v: life for v, life in self.lifetimes(steps).items() if v not in without}
        buffers = [arena.Buffer(extents[v][1] - extents[v][0], *life) for v, life in lives.items()]
        planned = arena.plan(buffers, ALIGNMENT)
        moves = {v: at - extents[v][0] for v, at in zip(lives, planned.offsets, strict=True)}
        return moves, planned.peak

    def move(self, memory: Memory, moves: dict[int, int]) -> Memory:
        by = moves.get(self.of(memory), 0)
        return replace(memory, byte=memory.byte + by) if by else memory

    def relocate(self, moves: dict[int, int]) -> ArenaValues:
        """Return the same values where they lie then."""
        heads = [self._head(number) for number in range(len(self._heads))]
        by = [moves.get(head, 0) for head in heads[1:]]
        places = zip(self.allocations, by, strict=True)
        changed = ArenaValues([(begin + n, end + n) for (begin, end), n in places])
        changed._heads = heads
        return changed

    def _head(self, number: int) -> int:
        while self._heads[number] != number:
            number = self._heads[number]
        return number

    def _lines(self, memory: Memory) -> slice:
        if memory.shifts:
            begin, end = self.allocations[memory.owner - 1]
        else:
            _, begin, end = memory.span
        return slice(begin // ALIGNMENT, -(-end // ALIGNMENT))

    def _join(self, one: int, other: int) -> None:
        heads = self._head(one), self._head(other)
        self._heads[max(heads)] = min(heads)


def _is_in_arena(memory: Memory) -> bool:
    return memory.buffer == "arena"
