"""The commands that the hardware expands LOOP_WS to: a matmul of tiles in half of each memory.

The other half is for the next loop, which may load meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fewbit.errors import InterpretError
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATE, ACCUMULATOR, FULL, GARBAGE, Command
from fewbit.simulators.gemmini.commands import Act
from fewbit.simulators.gemmini.hardware import Hardware

Configured = Mapping[type[Command], Any]
"""The last of each kind of configuration."""

LAYERNORM_STEPS = ((1, 2), (3, 4), (0, 0))
SOFTMAX_STEPS = ((5, 5), (6, 7), (0, 0))
STATISTICS = 4
"""Rows whose statistics are kept at a time."""


def require_config(given: Configured, kind: type[Command]) -> Any:
    command = given.get(kind)
    if command is None:
        raise InterpretError(f"a loop begins before {kind.MNEMONIC} says its part")
    return command


def matmul_commands(op: c.LoopWs, given: Configured, hardware: Hardware) -> Iterator[Command]:
    """Yield the commands of LOOP_WS: C = A · B + D, or the sum of A and B."""
    loop = _Matmul(op, given, hardware)
    return loop.residual_sum() if op.resadd else loop.matmul()


class _Matmul:
    def __init__(self, op: c.LoopWs, given: Configured, hardware: Hardware) -> None:
        self.op, self.dim = op, hardware.dim
        self.bounds: c.LoopBounds = require_config(given, c.LoopBounds)
        self.ab: c.LoopAddressesAB = require_config(given, c.LoopAddressesAB)
        self.dc: c.LoopAddressesDC = require_config(given, c.LoopAddressesDC)
        self.ab_strides: c.LoopStridesAB = require_config(given, c.LoopStridesAB)
        self.dc_strides: c.LoopStridesDC = require_config(given, c.LoopStridesDC)
        i, j, k = self.bounds.i, self.bounds.j, self.bounds.k
        half = hardware.half_scratchpad
        if not op.resadd and (i * k + k * j) * self.dim > half:
            raise InterpretError(f"tiles of {i} x {k} and {k} x {j} do not fit half the scratchpad")
        if i * j * self.dim > hardware.half_accumulator:
            raise InterpretError(f"a tile of {i} x {j} does not fit half the accumulator")
        self.a_start = half if op.a_spad_id == 2 else 0
        self.b_start = half * (2 if op.b_spad_id == 2 else 1) - k * j * self.dim
        self.c_start = ACCUMULATOR | ACCUMULATE | (FULL if op.full_c else 0)

    def rows(self, i: int) -> int:
        return self.dim - (self.bounds.pad_i if i == self.bounds.i - 1 else 0)

    def cols(self, j: int) -> int:
        return self.dim - (self.bounds.pad_j if j == self.bounds.j - 1 else 0)

    def depth(self, k: int) -> int:
        return self.dim - (self.bounds.pad_k if k == self.bounds.k - 1 else 0)

    def residual_sum(self) -> Iterator[Command]:
        for i in range(self.bounds.i):
            for j in range(self.bounds.j):
                row = (i * self.bounds.j + j) * self.dim
                size = {"rows": self.rows(i), "cols": self.cols(j)}
                a = _at(self.ab.a, i, j, self.ab_strides.a, self.dim)
                b = _at(self.ab.b, i, j, self.ab_strides.b, self.dim)
                yield c.Mvin(a, ACCUMULATOR + row, **size)
                yield c.Mvin2(b, (ACCUMULATOR | ACCUMULATE) + row, **size)
                if self.dc.c:
                    yield self._store(i, j)

    def matmul(self) -> Iterator[Command]:
        bounds, op = self.bounds, self.op
        if self.dc.d:
            yield from self._biases()
        for k in range(bounds.k):
            for j in range(bounds.j):
                for i in range(bounds.i):
                    if j == 0 and self.ab.a:
                        yield self._load_a(i, k)
                    if i == 0 and self.ab.b:
                        yield self._load_b(j, k)
                    yield from self._multiply(i, j, k)
                    if not self.dc.c or k < bounds.k - 1:
                        continue
                    if op.activation not in (Act.LAYERNORM, Act.SOFTMAX):
                        yield self._store(i, j)
                    elif j == bounds.j - 1:
                        yield from self._store_normalized(i)

    def _biases(self) -> Iterator[Command]:
        size = 1 if self.op.low_d else 4
        for i in range(self.bounds.i):
            for j in range(self.bounds.j):
                at = _at(self.dc.d, i, j, self.dc_strides.d, self.dim, size)
                row = ACCUMULATOR + (i * self.bounds.j + j) * self.dim
                yield c.Mvin3(at, row, rows=self.rows(i), cols=self.cols(j))

    def _a(self, i: int, k: int) -> int:
        transposed = self.op.a_transpose
        place = k * self.bounds.i + i if transposed else i * self.bounds.k + k
        return self.a_start + place * self.dim

    def _b(self, k: int, j: int) -> int:
        transposed = self.op.b_transpose
        place = j * self.bounds.k + k if transposed else k * self.bounds.j + j
        return self.b_start + place * self.dim

    def _load_a(self, i: int, k: int) -> Command:
        first, second = (k, i) if self.op.a_transpose else (i, k)
        sizes = (self.depth(k), self.rows(i))
        rows, cols = sizes if self.op.a_transpose else sizes[::-1]
        at = _at(self.ab.a, first, second, self.ab_strides.a, self.dim)
        return c.Mvin(at, self._a(i, k), rows=rows, cols=cols)

    def _load_b(self, j: int, k: int) -> Command:
        first, second = (j, k) if self.op.b_transpose else (k, j)
        sizes = (self.cols(j), self.depth(k))
        rows, cols = sizes if self.op.b_transpose else sizes[::-1]
        at = _at(self.ab.b, first, second, self.ab_strides.b, self.dim)
        return c.Mvin2(at, self._b(k, j), rows=rows, cols=cols)

    def _multiply(self, i: int, j: int, k: int) -> Iterator[Command]:
        out = self.c_start + (i * self.bounds.j + j) * self.dim
        if not self.op.accumulate and k == 0:
            out &= ~ACCUMULATE
        rows, cols, depth = self.rows(i), self.cols(j), self.depth(k)
        held = self._b(k, j) if i == 0 else GARBAGE
        yield c.Preload(held, cols, depth, out, cols, rows)
        compute = c.ComputePreloaded if i == 0 else c.ComputeAccumulated
        yield compute(self._a(i, k), depth, rows)

    def _store(self, i: int, j: int) -> Command:
        size = 4 if self.op.full_c else 1
        at = _at(self.dc.c, i, j, self.dc_strides.c, self.dim, size)
        row = self.c_start + (i * self.bounds.j + j) * self.dim
        return c.Mvout(at, row, rows=self.rows(i), cols=self.cols(j))

    def _store_normalized(self, i: int) -> Iterator[Command]:
        """Yield the moves of rows that need statistics first: each is moved out three times."""
        size = 4 if self.op.full_c else 1
        last = self.bounds.j - 1
        softmax = self.op.activation == Act.SOFTMAX
        for start in range(0, self.rows(i), STATISTICS):
            for inner, final in SOFTMAX_STEPS if softmax else LAYERNORM_STEPS:
                for row in range(start, min(start + STATISTICS, self.rows(i))):
                    yield c.ConfigNorm(stat_id=row - start, only_stat_id=1)
                    for j in range(self.bounds.j):
                        step = final if j == last else inner
                        local = self.c_start + (i * self.bounds.j + j) * self.dim + row
                        at = _at(self.dc.c, i, j, self.dc_strides.c, self.dim, size)
                        at += row * self.dc_strides.c * size
                        yield c.Mvout(at, local | step << 26, rows=1, cols=self.cols(j))


def _at(base: Any, row: int, col: int, stride: int, dim: int, size: int = 1) -> Any:
    """Return the address of a tile of a matrix with this many elements from row to row."""
    return base + (row * stride + col) * dim * size
