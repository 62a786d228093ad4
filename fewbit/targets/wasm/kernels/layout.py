"""How weights lie in memory for kernels with vectors: blocks of channels, four to a vector.

A *chunk* is what one vector of channels needs of some elements of the depth: for each of its four
channels in turn, a run of neighbours that one dot product takes. Two neighbours are multiplied as
16 bits, four as bytes. Narrow weights have several chunks in the fields of the same bytes, the
first in the lowest bits; 1 bit is 1 for -1. The last block of a layer whose channels do not fill it
begins earlier and has some channels twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
LANES = 4


@dataclass(frozen=True)
class VectorLayout:
    """Weights of `bits` for tiles of some vectors of channels."""

    bits: int
    vectors: int
    has_bytes: bool = False
    """Whether bytes are multiplied, four neighbours at once."""
    offset: int = 0
    """What is added to weights, so that they count from 0; for 1 bit, 1 says that signs do."""

    @property
    def run(self) -> int:
        """Neighbours that a dot product takes."""
        return 4 if self.has_bytes else 2

    @property
    def parts(self) -> int:
        """Chunks in the same bytes."""
        return 8 // self.bits

    @property
    def step(self) -> int:
        """Elements of the depth in these bytes."""
        return self.run * self.parts

    @property
    def chunk_bytes(self) -> int:
        return LANES * self.run

    @property
    def columns(self) -> int:
        return LANES * self.vectors

    @property
    def name(self) -> str:
        kind = "bytes" if self.has_bytes else "pairs"
        return f"{kind}{self.vectors}" + (f"_from_{self.offset}" if self.offset else "")

    def steps(self, k: int) -> int:
        return -(-k // self.step)

    def depth(self, k: int) -> int:
        """Return elements of a row of activations with its padding."""
        return self.steps(k) * self.step

    def starts(self, n: int) -> list[int]:
        """Return the first channel of each block."""
        return [min(first, n - self.columns) for first in range(0, n, self.columns)]

    def block_bytes(self, k: int) -> int:
        return self.steps(k) * self.chunk_bytes * self.vectors

    def pack(self, weight: Array) -> Array:
        """Return weights, N x K, as bytes."""
        n, k = weight.shape
        padded = np.zeros((n, self.depth(k)), np.int64)
        padded[:, :k] = weight
        fields = (padded < 0) if self.bits == 1 else padded + self.offset
        fields = fields.astype(np.int64) & ((1 << self.bits) - 1)
        parts = fields.reshape(n, self.steps(k), self.parts, self.run)
        shifts = np.arange(self.parts)[:, None] * self.bits
        packed = (parts << shifts).sum(axis=2).astype(np.uint8)
        blocks = [packed[s : s + self.columns].transpose(1, 0, 2) for s in self.starts(n)]
        return np.concatenate([np.ascontiguousarray(b).reshape(-1) for b in blocks]).view(np.int8)
