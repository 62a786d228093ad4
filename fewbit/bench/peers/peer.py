"""What a benchmark asks of every tool: make files of a model once, and open them to run it.

A tool may have several ways to treat a model, its variants. All are made, and the fastest one
counts: which it is depends on the model, and no peer should lose for a setting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fewbit.bench.case import Array, Case


@dataclass(frozen=True)
class Session:
    """A model that is ready: `run` computes once, `outputs` are those of the last run."""

    run: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]


class Peer(ABC):
    """A tool, in the process that runs it."""

    makes_files = True
    """Whether there is anything to build; else it has one variant."""

    @abstractmethod
    def packages(self, quantized: bool) -> tuple[str, ...]:
        """Return what has to be installed."""

    @abstractmethod
    def variants(self, quantized: bool) -> tuple[str, ...]:
        """Return names of ways to run a model, each with its number type first."""

    @abstractmethod
    def build(self, case: Case, variant: str, folder: Path) -> None:
        """Make the files of a variant."""

    @abstractmethod
    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        """Load a variant that was built."""
