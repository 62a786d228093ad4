"""The loops of a function in the llvm dialect, found by their back edges.

Blocks stand in the order of the program, since that is how structured loops were lowered: a branch
to an earlier block, or to its own, goes round a loop of all blocks between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch_mlir.ir import Block, OpView


@dataclass(frozen=True)
class Loop:
    """The blocks from the one that a loop begins with to the one that branches back."""

    blocks: Sequence[Block]
    first: int
    last: int

    @property
    def back_edge(self) -> OpView:
        return _terminator(self.blocks[-1])

    def contains(self, other: Loop) -> bool:
        return other is not self and self.first <= other.first and other.last <= self.last


def loops_of(function: OpView) -> list[Loop]:
    """Return all loops of a function, inner ones before those around them."""
    loops: list[Loop] = []
    for region in function.operation.regions:
        blocks = list(region.blocks)
        numbers = {block: i for i, block in enumerate(blocks)}
        for i, block in enumerate(blocks):
            starts = [numbers[s] for s in _terminator(block).operation.successors]
            loops += [Loop(blocks[at : i + 1], at, i) for at in starts if at <= i]
    return loops


def innermost(loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops that no other is in."""
    return [loop for loop in loops if not any(map(loop.contains, loops))]


def _terminator(block: Block) -> OpView:
    *_, end = block.operations
    return end
