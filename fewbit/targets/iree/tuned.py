"""Modules with tiles that a search found, beside those with IREE's own.

What is known of a program's dispatches is looked up by a tuner, which stands above the targets;
here is what it must give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fewbit.targets.iree.compiler import IreeOutput
from fewbit.targets.iree.source import Source


@dataclass(frozen=True)
class Modules:
    """A program compiled with IREE's own tiles and with tuned ones."""

    default: IreeOutput
    tuned: IreeOutput | None
    """None where nothing is known of the program's dispatches, or nothing had an effect."""
    dispatches: int
    """Those with tiles that a search found."""


class KnownTiles(Protocol):
    """What a database has for a target."""

    def build(self, source: Source, flags: Sequence[str], name: str, *, has_paths: bool) -> Modules:
        """Compile a program without and with what is known."""
        ...
