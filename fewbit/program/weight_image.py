"""The weights of a compiled program: one image, each constant at an aligned offset in it.

Variants of a program for several processors read one image. Constants that have the same bytes in
some of them lie there once; a weight that is packed for a processor lies there for each layout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewbit.base.spool import Spool
from fewbit.program.tensor_file import Array, raw_bytes

ALIGNMENT = 64
"""A cache line, and the widest vector register."""


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class Placed:
    name: str
    offset: int
    array: np.ndarray[Any, Any]


@dataclass
class WeightImage:
    entries: list[Placed] = field(default_factory=list[Placed])
    nbytes: int = 0
    spool: Spool = field(default_factory=Spool)

    def add(self, name: str, array: Array) -> int:
        """Place a constant behind the others and return its offset."""
        data = self.spool.keep(np.ascontiguousarray(array))
        offset = self.nbytes
        self.entries.append(Placed(name, offset, data))
        self.nbytes = aligned(offset + data.nbytes)
        return offset

    def add_together(self, named: Sequence[tuple[str, Array]]) -> int:
        """Place constants one behind another, each aligned, and return where the first is."""
        start = self.nbytes
        for name, array in named:
            self.add(name, array)
        return start

    @property
    def bytes_read(self) -> int:
        """The bytes of all constants, each counted once, with the gaps behind them."""
        sizes = {entry.offset: entry.array.nbytes for entry in self.entries}
        return sum(map(aligned, sizes.values()))

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of the image in their order, without a copy."""
        written = 0
        for entry in self.entries:
            yield b"\0" * (entry.offset - written)
            yield raw_bytes(entry.array)
            written = entry.offset + entry.array.nbytes
        yield b"\0" * (self.nbytes - written)

    def view(self) -> memoryview:
        """Return the bytes of the image, which are copied once only."""
        image = np.zeros(self.nbytes, np.uint8)
        for entry in self.entries:
            flat = entry.array.reshape(-1).view(np.uint8)
            image[entry.offset : entry.offset + flat.size] = flat
        return image.data

    def tobytes(self) -> bytes:
        return self.view().tobytes()


@dataclass
class SharedWeights(WeightImage):
    """The image that all variants read."""

    offsets: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """Where bytes lie, by their hash."""

    def place(self, *named: tuple[str, Array]) -> int:
        """Place constants one behind another, where they are not there yet in this order."""
        content = hashlib.sha256()
        for _, array in named:
            content.update(hashlib.sha256(raw_bytes(array)).digest())
        digest = content.digest()
        if digest not in self.offsets:
            self.offsets[digest] = self.add_together(named)
        return self.offsets[digest]


@dataclass
class VariantWeights(WeightImage):
    """What one variant reads of the shared image: `nbytes` is where the last of it ends."""

    shared: SharedWeights = field(default_factory=SharedWeights)

    def add(self, name: str, array: Array) -> int:
        data = self.spool.keep(np.ascontiguousarray(array))
        offset = self.shared.place((name, data))
        self._note(name, offset, data)
        return offset

    def add_together(self, named: Sequence[tuple[str, Array]]) -> int:
        arrays = [(name, self.spool.keep(np.ascontiguousarray(array))) for name, array in named]
        start = offset = self.shared.place(*arrays)
        for name, array in arrays:
            self._note(name, offset, array)
            offset = aligned(offset + array.nbytes)
        return start

    def _note(self, name: str, offset: int, array: Array) -> None:
        self.entries.append(Placed(name, offset, array))
        self.nbytes = max(self.nbytes, aligned(offset + array.nbytes))
