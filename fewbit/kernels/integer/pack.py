"""Integer weights in panels, and rows that are shorter than a step.

A weight is taken as [taps, depth, n]. Each tap takes whole steps: `isa.step` weights of a column
stand together, for one column after another. The last step of a tap ends where the tap does, and
holds zeros for what the step before it has already.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from fewbit.kernels.emit import Function
from fewbit.kernels.integer.dot import BIAS
from fewbit.kernels.isa import Isa
from fewbit.kernels.kernel import Bytes
from fewbit.kernels.pack import panel_starts


def packed_bytes(taps: int, depth: int, n: int, isa: Isa) -> int:
    """Bytes that a packed weight takes."""
    return taps * -(-depth // isa.step) * isa.step * -(-n // isa.lanes) * isa.lanes


def pack_taps(weight: Bytes, isa: Isa) -> Bytes:
    """A weight [taps, depth, n] in panels, as one row of bytes."""
    taps, depth, n = weight.shape
    starts = panel_starts(n, isa)
    cells = np.zeros((taps, -(-depth // isa.step) * isa.step, starts[-1]), np.int8)
    stored = (weight.view(np.uint8) + np.uint8(BIAS)).view(np.int8) if _unsigned(isa) else weight
    cells[:, _cells(depth, isa), :n] = stored
    steps = cells.reshape(taps, -1, isa.step, starts[-1])
    panels = [steps[..., a:b].swapaxes(2, 3).ravel() for a, b in pairwise(starts)]
    return np.concatenate(panels)


def unpack_taps(packed: Bytes, taps: int, depth: int, n: int, isa: Isa) -> Bytes:
    """The weight [taps, depth, n] that `pack_taps` has packed."""
    starts = panel_starts(n, isa)
    steps, at = taps * -(-depth // isa.step), 0
    columns: list[Bytes] = []
    for a, b in pairwise(starts):
        size = steps * isa.step * (b - a)
        panel = packed[at : at + size].reshape(steps, b - a, isa.step).swapaxes(1, 2)
        columns.append(panel.reshape(taps, -1, b - a))
        at += size
    stored = np.concatenate(columns, 2)[:, _cells(depth, isa), :n]
    return (stored.view(np.uint8) - np.uint8(BIAS)).view(np.int8) if _unsigned(isa) else stored


def _unsigned(isa: Isa) -> bool:
    return isa.dot == "vnni"


def _cells(depth: int, isa: Isa) -> list[int]:
    """Where in its steps each number of a tap stands."""
    rest = depth % isa.step
    shift = isa.step - rest if rest and depth > isa.step else 0
    return [k if k < depth - rest else k + shift for k in range(depth)]


@cache
def widen(isa: Isa) -> Function:
    """Copy rows shorter than a step to `room`, a step for each, filled up with zeros."""
    f = Function(isa, "fewbit_widen_i8", "ptr table, i64 count, i64 depth, ptr room")
    table, count, depth, room = f.parameters
    with f.loop(0, count) as loop:
        row = f.load("ptr", table, loop.index)
        copy = f.at(room, loop.index * isa.step, "i8")
        with f.loop(0, isa.step) as along:
            at = along.index
            source = f.select(at < depth, row, f.zeros())
            f.store(f.load("i8", source, at), copy, at)
        f.store(copy, table, loop.index)
    return f
