"""How operands of dot products lie in memory: words of fields, in panels of rows.

A dot product takes a word of wide fields and as many narrow ones. A hidden offset says which part
of the narrow word is next, and moves on with every instruction; so a word of the narrower operand
is used up by `ratio` instructions, one after another, and a row has whole such words. A *step* is
one narrow word and `ratio` wide ones. A panel holds, for each step, the words of its rows side by
side: a tile of the matmul walks through two panels with one pointer each.

Fields beyond the end of a row are zeros, which add nothing; but 1 bit has no zero. There the tile
subtracts what the padding adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.numerics.packing import pack

WIDTHS = (1, 2, 4, 8)
CHUNK = 32
"""Bits that are packed at once, whatever the size of a word."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Layout:
    """The operands of a matmul of activations and weights, each of 1, 2, 4 or 8 bits."""

    act: int
    weight: int
    xlen: int = 32

    @property
    def wide(self) -> int:
        return max(self.act, self.weight)

    @property
    def narrow(self) -> int:
        return min(self.act, self.weight)

    @property
    def ratio(self) -> int:
        """Instructions that use up a word of the narrower operand."""
        return self.wide // self.narrow

    @property
    def act_is_wide(self) -> bool:
        """Whether activations are the first operand, which is never the narrower one."""
        return self.act >= self.weight

    @property
    def rows(self) -> int:
        """Rows of a full panel of activations."""
        return self._wide_rows if self.act_is_wide else 4

    @property
    def columns(self) -> int:
        """Output channels of a full panel of weights."""
        return 4 if self.act_is_wide else self._wide_rows

    @property
    def _wide_rows(self) -> int:
        # A row of the wider operand takes `ratio` registers.
        return 2 if self.ratio == 8 else 4

    def steps(self, k: int) -> int:
        """Return words of the narrower operand in a row."""
        return -(-k * self.narrow // self.xlen)

    def depth(self, k: int) -> int:
        """Return elements of a row with its padding."""
        return self.steps(k) * self.xlen // self.narrow

    def excess(self, k: int) -> int:
        """Return what padding adds to each sum."""
        return self.depth(k) - k if self.wide == 1 else 0

    @property
    def act_chunks(self) -> int:
        """Chunks of an activation's row in a step."""
        return (self.ratio if self.act_is_wide else 1) * self.xlen // CHUNK

    @property
    def weight_chunks(self) -> int:
        return (1 if self.act_is_wide else self.ratio) * self.xlen // CHUNK

    def row_bytes(self, k: int) -> int:
        """Return the bytes of a packed row of activations."""
        return self.steps(k) * self.act_chunks * CHUNK // 8

    def panels(self, weight: Array) -> Array:
        """Return weights, N x K, as bytes in panels; the last one may have fewer rows."""
        n, k = weight.shape
        packed = pack(weight, self.weight, align=self.depth(k))
        words = packed.view("<u4").reshape(n, self.steps(k), self.weight_chunks)
        parts = [
            np.ascontiguousarray(words[first : first + self.columns].transpose(1, 0, 2))
            for first in range(0, n, self.columns)
        ]
        return np.concatenate([part.view(np.int8).ravel() for part in parts])

    def panel_bytes(self, k: int, columns: int) -> int:
        """Return the bytes of a panel of weights."""
        return self.steps(k) * self.weight_chunks * columns * CHUNK // 8
