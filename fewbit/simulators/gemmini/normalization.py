"""What `mvout` does beside scaling: I-BERT's integer GELU, softmax and layer norm.

Layer norm and softmax need statistics of whole rows. They are gathered by `mvout`s that write
nothing, with the kind of step in bits 28:26 of the local address, before the one that writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from math import isqrt
from typing import Any

import numpy as np

from fewbit.simulators.gemmini.commands import Act, ConfigNorm

Ints = np.ndarray[Any, np.dtype[np.int32]]
LEAST = -(1 << 31)


class Step(IntEnum):
    """What a `mvout` does with the statistics of its rows."""

    WRITE = 0
    SUM = 1
    MEAN = 2
    VARIANCE = 3
    INV_STDDEV = 4
    MAX = 5
    SUM_EXP = 6
    INV_SUM_EXP = 7

    @property
    def inner(self) -> Step:
        """The same for all parts of a row but its last."""
        return {
            Step.MEAN: Step.SUM,
            Step.INV_STDDEV: Step.VARIANCE,
            Step.INV_SUM_EXP: Step.SUM_EXP,
        }.get(self, self)


@dataclass
class _Row:
    """What is known of one row."""

    sum: int = 0
    count: int = 0
    running_max: int = LEAST
    max: int = 0
    mean: int = 0
    inv_stddev: np.float32 = field(default_factory=lambda: np.float32(1))
    inv_sum_exp: np.float32 = field(default_factory=lambda: np.float32(1))
    fresh: bool = True


class Normalization:
    """Constants and statistics."""

    def __init__(self) -> None:
        self.rows = [_Row() for _ in range(256)]
        self.id = 0
        self.qb = self.qc = self.qln2 = self.qln2_inv = 0

    def configure(self, command: ConfigNorm) -> None:
        self.id = command.stat_id
        if command.only_stat_id:
            return
        self.qb, self.qc = command.qb, command.qc
        if command.constant_type:
            self.qln2_inv = command.constant
        else:
            self.qln2 = command.constant

    def gather(self, values: Ints, step: Step) -> None:
        """Add part of a row to the statistics."""
        row = self.rows[self.id]
        if row.fresh:
            row.sum, row.count, row.running_max = 0, 0, LEAST
        row.fresh = step in (Step.WRITE, Step.MEAN, Step.INV_STDDEV)
        if step in (Step.SUM, Step.MEAN):
            row.sum = _wrap(row.sum + int(values.sum(dtype=np.int64)))
            row.count += values.size
        elif step in (Step.VARIANCE, Step.INV_STDDEV):
            row.sum = _wrap(row.sum + int(np.square(values - np.int32(row.mean)).sum()))
            row.count += values.size
        elif step == Step.MAX:
            row.running_max = max(row.running_max, int(values.max()))
        elif step in (Step.SUM_EXP, Step.INV_SUM_EXP):
            row.max = row.running_max
            powers = self._exp(values - np.int32(row.max))
            row.sum = _wrap(row.sum + int(powers.sum(dtype=np.int64)))
        self._conclude(row, step)

    def _conclude(self, row: _Row, step: Step) -> None:
        if step == Step.MEAN:
            row.mean = int(row.sum / row.count)
        elif step == Step.INV_STDDEV:
            row.inv_stddev = np.float32(1) / np.float32(
                isqrt(max(0, int(row.sum / row.count))) or 1
            )
        elif step == Step.INV_SUM_EXP:
            row.running_max = LEAST
            row.inv_sum_exp = np.float32(127) / np.float32(row.sum)

    def apply(self, values: Ints, activation: Act) -> Ints:
        """Return what is scaled in the place of the accumulator's values."""
        row = self.rows[self.id]
        if activation == Act.IGELU:
            return self._gelu(values)
        if activation == Act.LAYERNORM:
            return ((values - np.int32(row.mean)) * row.inv_stddev).astype(np.int32)
        if activation == Act.SOFTMAX:
            powers = self._exp(values - np.int32(row.max)).astype(np.float32)
            return np.clip(np.rint(powers * row.inv_sum_exp), -128, 127).astype(np.int32)
        return values

    def _gelu(self, q: Ints) -> Ints:
        clipped = np.minimum(np.abs(q), np.int32(-self.qb))
        poly = np.square(clipped + np.int32(self.qb)) + np.int32(self.qc)
        sign = np.where(q < 0, np.int32(-1), np.int32(1))
        return q * (sign * poly + np.int32(self.qc))

    def _exp(self, q: Ints) -> Ints:
        z = (-q * np.int32(self.qln2_inv)) >> 16
        remainder = q + z * np.int32(self.qln2) + np.int32(self.qb)
        return (np.square(remainder) + np.int32(self.qc)) >> np.minimum(z, 31)


def _wrap(value: int) -> int:
    """Wrap to 32 bits."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
