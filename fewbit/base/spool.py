"""Arrays in a temporary file, mapped: memory that the system can write out and take back.

What is made once and read once or twice, such as packed weights, would otherwise all stay in memory
until it is written where it belongs. The file has no name, and ends with the last of its arrays.
Where no file can be written, arrays stay in memory.
"""

from __future__ import annotations

from mmap import mmap
from os import posix_fallocate, pwrite
from tempfile import TemporaryFile
from typing import IO, Any, cast

import numpy as np

Array = np.ndarray[Any, Any]

LARGE = 1 << 20
"""Bytes of an array that is worth a place in a file."""
SEGMENT = 1 << 30
"""Bytes that are mapped at once; a file has those that were written, and no more."""
ALIGNMENT = 64


class Spool:
    """A temporary file for arrays that are read-only from then on."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._mapped: mmap | None = None
        self._used = 0

    def keep(self, array: Array) -> Array:
        """Return a copy of an array in the file; the array itself if it is small."""
        if array.nbytes < LARGE or is_mapped(array):
            return array
        try:
            start = self._take(array.nbytes)
            self._write(np.ascontiguousarray(array), start)
        except OSError:
            return array
        kept = self._view(array.shape, array.dtype, start)
        kept.flags.writeable = False
        return kept

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array to write to, in the file if it is large."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if size < LARGE:
            return np.empty(shape, dtype)
        try:
            start = self._take(size)
        except OSError:
            return np.empty(shape, dtype)
        return self._view(shape, dtype, start)

    def _view(self, shape: tuple[int, ...], dtype: Any, start: int) -> Array:
        assert self._mapped is not None
        return np.ndarray(shape, dtype, buffer=self._mapped, offset=start)

    def _write(self, array: Array, start: int) -> None:
        """Write to the file itself, which costs less than to its mapped pages."""
        assert self._file is not None
        data = array.reshape(-1).view(np.uint8).data
        while len(data):
            written = pwrite(self._file.fileno(), data, start)
            data, start = data[written:], start + written

    def _take(self, size: int) -> int:
        """Return where in the file there is room, which is then there: a full disk is an error."""
        start = -(-self._used // ALIGNMENT) * ALIGNMENT
        if self._mapped is None or start + size > len(self._mapped):
            start, length = 0, max(SEGMENT, size)
            self._file = TemporaryFile()  # noqa: SIM115 - its room grows
            self._file.truncate(length)
            self._mapped = mmap(self._file.fileno(), length)
        assert self._file is not None
        posix_fallocate(self._file.fileno(), start, size)
        self._used = start + size
        return start


def is_mapped(array: Array) -> bool:
    """Return whether an array is a view of a mapped file."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = cast(Any, base).base
    return isinstance(base, mmap)
