"""Weights that stay float in a program whose other weights have few bits.

It is one record, so that tables, manifests and warnings say the same. `fewbit.quant.weights` fills
it in.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.base.folders import Record

NAMED = 6
"""How many weights a sentence names; a manifest names all."""


class FloatWeights(Record):
    names: tuple[str, ...] = ()
    """Weights that no layer of ours reads, so that no recipe reaches them."""
    asked: tuple[str, ...] = ()
    """Weights that the recipe leaves float."""
    weights: int
    """How many weights the program has."""
    percent: float
    """The share that all float weights have in the bytes of weights."""

    @property
    def count(self) -> int:
        return len(self.names) + len(self.asked)

    @property
    def amount(self) -> str:
        """`2 of 12 weights, 61 % of weight bytes`."""
        return f"{self.count} of {self.weights} weights, {self.percent:.0f} % of weight bytes"

    @property
    def stay(self) -> str:
        return "stays" if self.count == 1 else "stay"

    def __str__(self) -> str:
        """Return `2 of 12 weights, 61 % of weight bytes, stay float: a, b`, with their names."""
        parts = [_join_names(self.names)] if self.names else []
        parts += [f"as the recipe asks: {_join_names(self.asked)}"] if self.asked else []
        return f"{self.amount}, {self.stay} float: {'; '.join(parts)}"


def _join_names(names: Sequence[str]) -> str:
    shown, more = ", ".join(names[:NAMED]), len(names) - NAMED
    return f"{shown} and {more} more" if more > 0 else shown
