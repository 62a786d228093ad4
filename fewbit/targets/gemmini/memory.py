"""DRAM as the accelerator sees it: rows of bytes at a stride, in an array that others share."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewbit.errors import InterpretError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Memory:
    """Bytes from an address on."""

    def __init__(self, bytes: Bytes, base: int = 0) -> None:
        self.bytes = bytes
        self.base = base

    def rows(self, address: int, rows: int, stride: int, length: int) -> Bytes:
        """A view of `rows` rows of `length` bytes, each `stride` after the one before."""
        first = address - self.base
        last = first + max(rows - 1, 0) * stride + length
        if first < 0 or last > len(self.bytes):
            raise InterpretError(
                f"the accelerator reaches {rows} rows of {length} bytes at {address:#x}, outside "
                f"memory ({self.base:#x} to {self.base + len(self.bytes):#x})"
            )
        return np.lib.stride_tricks.as_strided(
            self.bytes[first:], (rows, length), (stride, 1), writeable=self.bytes.flags.writeable
        )
