"""Which parts of a model run on compiled code, and which in PyTorch, and why.

A graph is a tree: one that could not be compiled as a whole has parts. Parts are compiled when they
are first called, so the whole is known after the first call; a graph that fell back then says so in
one warning with counts. `report()` has all graphs of the process, newest last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Part:
    """A graph of Dynamo's, or a part of one."""

    ops: int
    """How many calls of functions and methods are in it."""
    reason: str | None = None
    """Why PyTorch runs it; None where it is compiled, or was not called yet."""
    is_compiled: bool = False
    parts: list[Part] = field(default_factory=list["Part"])
    """What it was cut into."""

    def leaves(self) -> Iterator[Part]:
        """Yield the parts that run as one."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()

    @property
    def compiled_ops(self) -> int:
        return sum(part.ops for part in self.leaves() if part.is_compiled)

    @property
    def reasons(self) -> Counter[str]:
        """How many ops PyTorch runs for each reason."""
        counts = Counter[str]()
        for part in self.leaves():
            if part.reason is not None:
                counts[part.reason] += part.ops
        return counts

    def __str__(self) -> str:
        compiled = sum(part.is_compiled for part in self.leaves())
        parts = "1 part" if compiled == 1 else f"{compiled} parts"
        text = f"{self.compiled_ops} of {self.ops} ops are compiled, in {parts}"
        eager = [f"{reason} ({count})" for reason, count in self.reasons.items()]
        return f"{text}; in PyTorch: {'; '.join(eager)}" if eager else text


class Report(list[Part]):
    """All graphs, as one text a line each."""

    def __str__(self) -> str:
        return "\n".join(f"graph {i}: {part}" for i, part in enumerate(self)) or "no graphs"


_graphs = Report()


def report() -> Report:
    """Return every graph that the backend was given, with its parts."""
    return Report(_graphs)


def clear_report() -> None:
    _graphs.clear()


def add_graph(part: Part) -> None:
    _graphs.append(part)
