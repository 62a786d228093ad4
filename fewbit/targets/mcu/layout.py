"""How weights lie in flash: fields of 1, 2, 4 or 8 bits, in the order in which a kernel reads them.

A *block* is the channels that a tile computes together, and a *step* what it reads of each of them
at once: the block holds, for each step, one chunk of every channel. The last block of a layer whose
channels do not fill it begins earlier and has some channels twice, so that kernels need no tail.

| family | a chunk | its fields |
|---|---|---|
| `plain` | 1, 4 or 8 elements | two's complement, the first element lowest |
| `dsp` | a word | counted from 0; pairs that are 16 bits apart, as `sxtb16` takes bytes apart |
| `mve` | 16 bytes | two's complement; a byte has a field of each of 8/b runs of 16 elements |

1 bit is 1 for -1. Beyond the end of a row activations are zeros, so what stands there is no matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.targets.mcu.core import Family

WIDTHS = (1, 2, 4, 8)
VECTOR = 16
"""Bytes of a vector of Helium."""
Array = np.ndarray[Any, Any]


def stored_bits(bits: int) -> int:
    """Return the smallest width that is stored."""
    return next(width for width in WIDTHS if width >= bits)


@dataclass(frozen=True)
class Layout:
    """Weights of `bits` for kernels of a family, `columns` channels in a block."""

    family: Family
    bits: int
    columns: int

    @property
    def step(self) -> int:
        """Elements of a chunk."""
        if self.family == "plain":
            return {8: 1, 1: 8}.get(self.bits, 4)
        return (4 if self.family == "dsp" else VECTOR) * 8 // self.bits

    @property
    def grain(self) -> int:
        """Elements that a kernel reads of activations at once: rows have whole ones."""
        return VECTOR if self.family == "mve" else self.step

    @property
    def chunk_bytes(self) -> int:
        return self.step * self.bits // 8

    @property
    def offset(self) -> int:
        """What is added to weights of more than 1 bit, so that they count from 0."""
        return 1 << self.bits - 1 if self.family == "dsp" and self.bits < 8 else 0

    def depth(self, k: int) -> int:
        """Return elements of a row of activations with its padding."""
        return -(-k // self.grain) * self.grain

    def steps(self, k: int) -> int:
        return -(-k // self.step)

    def starts(self, n: int) -> list[int]:
        """Return the first channel of each block."""
        return [min(first, n - self.columns) for first in range(0, n, self.columns)]

    def block_bytes(self, k: int) -> int:
        return self.steps(k) * self.chunk_bytes * self.columns

    def pack(self, weight: Array) -> Array:
        """Return weights, N x K, as bytes."""
        n, k = weight.shape
        padded = np.zeros((n, self.steps(k) * self.step), np.int64)
        padded[:, :k] = weight
        chunks = self._chunks(padded).reshape(n, self.steps(k), self.chunk_bytes)
        blocks = [chunks[s : s + self.columns].transpose(1, 0, 2) for s in self.starts(n)]
        return np.concatenate([np.ascontiguousarray(b).reshape(-1) for b in blocks]).view(np.int8)

    def _chunks(self, weight: Array) -> Array:
        """Return the chunks of rows as bytes, one after another."""
        n = len(weight)
        fields = (weight < 0) if self.bits == 1 else weight + self.offset
        fields = (fields.astype(np.int64) & ((1 << self.bits) - 1)).astype(np.uint8)
        parts = fields.reshape(n, -1, self.step)[:, :, self._order]
        per_byte = 8 // self.bits
        bytes_ = parts.reshape(n, -1, self.chunk_bytes, per_byte)
        shifts = np.arange(per_byte, dtype=np.uint8) * self.bits
        return (bytes_ << shifts).sum(axis=-1).astype(np.uint8)

    @property
    def _order(self) -> Array:
        """Return the elements of a chunk from its lowest bits on."""
        elements = np.arange(self.step)
        if self.family == "plain" or self.bits == 8:
            return elements
        if self.family == "mve":
            return elements.reshape(-1, VECTOR).T.reshape(-1)
        pairs = self.step // 2
        first = np.array([4 * (j // 2) + j % 2 for j in range(pairs)])
        return np.concatenate([first, first + 2])
