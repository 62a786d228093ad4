"""The table of a library that counts where its time goes, as Python reads it.

Ticks are of a counter whose rate no instruction tells. It is taken against a clock, from the time
that the library was loaded until the table is read.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from time import perf_counter, sleep

UNSEEN = 2**64 - 1
LONG_ENOUGH = 0.05
"""Seconds over which the counter's rate is taken, at least."""


@dataclass(frozen=True)
class CallProfile:
    """A call of a loop nest or kernel in a program; amounts of work are of one execution."""

    name: str
    """The layer that it is part of."""
    kernel: str
    """`loop` for a loop nest."""
    calls: int
    cycles: int
    """Ticks of the counter, in all executions."""
    seconds: float
    least: float
    """Seconds of the fastest execution: other programs disturb it least."""
    macs: int
    bytes: int
    weight_bytes: int


class _Row(ctypes.Structure):
    _fields_ = (
        ("layer", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("macs", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("weight_bytes", ctypes.c_uint64),
        ("calls", ctypes.c_uint64),
        ("ticks", ctypes.c_uint64),
        ("least", ctypes.c_uint64),
    )
    layer: bytes
    kernel: bytes
    macs: int
    bytes: int
    weight_bytes: int
    calls: int
    ticks: int
    least: int


class Profile:
    """The table of a loaded library."""

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._ticks = getattr(library, f"{name}_ticks")
        self._ticks.restype = ctypes.c_uint64
        self._start = self._ticks(), perf_counter()
        table = getattr(library, f"{name}_profile")
        table.restype = ctypes.POINTER(_Row)
        table.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
        count = ctypes.c_size_t()
        rows = table(ctypes.byref(count))
        self._rows: list[_Row] = [rows[i] for i in range(count.value)]

    def rows(self) -> list[CallProfile]:
        """Return what was counted so far, in the order of the program."""
        second = self._ticks_a_second()
        return [
            CallProfile(
                name=row.layer.decode(),
                kernel=row.kernel.decode(),
                calls=row.calls,
                cycles=row.ticks,
                seconds=row.ticks / second,
                least=row.least / second if row.calls else 0.0,
                macs=row.macs,
                bytes=row.bytes,
                weight_bytes=row.weight_bytes,
            )
            for row in self._rows
        ]

    def reset(self) -> None:
        """Count anew."""
        for row in self._rows:
            row.calls, row.ticks, row.least = 0, 0, UNSEEN

    def _ticks_a_second(self) -> float:
        ticks, start = self._start
        sleep(max(0.0, LONG_ENOUGH - (perf_counter() - start)))
        return (self._ticks() - ticks) / (perf_counter() - start)
