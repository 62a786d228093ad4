"""DRAM as the accelerator sees it: an array of bytes, with addresses as indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewbit.errors import InterpretError

Memory = np.ndarray[Any, np.dtype[np.uint8]]


def rows_of(memory: Memory, address: int, rows: int, stride: int, length: int) -> Memory:
    """Return a view of `rows` rows of `length` bytes, each `stride` after the one before."""
    last = address + max(rows - 1, 0) * stride + length
    if address < 0 or last > len(memory):
        raise InterpretError(
            f"the accelerator reaches {rows} rows of {length} bytes at {address:#x}, outside "
            f"memory, which ends at {len(memory):#x}"
        )
    return np.lib.stride_tricks.as_strided(memory[address:], (rows, length), (stride, 1))
