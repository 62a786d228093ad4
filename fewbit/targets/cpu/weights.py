"""The weights of a compiled program: one image, each constant at an aligned offset in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from fewbit.tensor_file import Array

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

    def add(self, name: str, array: Array) -> int:
        """Place a constant behind the others; its offset."""
        data = np.ascontiguousarray(array)
        offset = self.nbytes
        self.entries.append(Placed(name, offset, data))
        self.nbytes = aligned(offset + data.nbytes)
        return offset

    def write(self, file: BinaryIO) -> None:
        written = 0
        for entry in self.entries:
            file.write(b"\0" * (entry.offset - written))
            file.write(entry.array.tobytes())
            written = entry.offset + entry.array.nbytes
        file.write(b"\0" * (self.nbytes - written))

    def tobytes(self) -> bytes:
        image = bytearray(self.nbytes)
        for entry in self.entries:
            image[entry.offset : entry.offset + entry.array.nbytes] = entry.array.tobytes()
        return bytes(image)
