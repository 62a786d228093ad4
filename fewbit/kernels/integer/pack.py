"""Integer weights in panels, and rows that are shorter than a step.

A weight is taken as [taps, depth, n]. Each tap takes whole steps: `isa.step` weights of a column
stand together, for one column after another. The last step of a tap ends where the tap does, and
holds zeros for what the step before it has already. Below 8 bits, a tap takes whole runs of steps,
which share bytes as `fields.py` says.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fewbit.kernels.emit import Function
from fewbit.kernels.integer.dot import BIAS
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.kernel import Bytes
from fewbit.kernels.pack import panel_starts
from fewbit.toolchain.isa import Isa


def packed_bytes(taps: int, depth: int, n: int, isa: Isa, bits: int = 8) -> int:
    """Return bytes that a packed weight takes."""
    fields = Fields(isa, bits)
    column = taps * fields.runs(depth) * fields.run_vectors * isa.step
    return column * -(-n // isa.lanes) * isa.lanes


def pack_taps(weight: Bytes, fields: Fields) -> Bytes:
    """Return a weight [taps, depth, n] in panels, as one row of bytes."""
    taps, depth, n = weight.shape
    isa = fields.isa
    runs, at = fields.runs(depth), 0
    places = slice(depth) if depth % isa.step == 0 else _cells(depth, isa)
    packed = np.empty(packed_bytes(taps, depth, n, isa, fields.bits), np.uint8)
    # Panel by panel, because a panel fits a cache, and large weights take time and memory.
    for a, b in pairwise(panel_starts(n, isa)):
        columns = weight[:, :, a:b].transpose(2, 0, 1)
        cells = np.zeros((b - a, taps, runs * fields.unit), np.uint8)
        cells[: len(columns), :, places] = fields.number(columns)
        # A step is moved as a whole: numpy is slow with bytes.
        steps = cells.view(f"V{isa.step}").reshape(b - a, taps * runs * fields.run)
        rows = np.ascontiguousarray(steps.T).view(np.uint8)
        panel = fields.join(rows.reshape(taps * runs, fields.run, (b - a) * isa.step))
        packed[at : at + panel.size] = panel.ravel()
        at += panel.size
    return packed.view(np.int8)


def column_offsets(weight: Bytes, isa: Isa) -> NDArray[np.int32]:
    """Return what to add to sums of rows that are too large by 128 everywhere, for each column."""
    offsets = np.zeros(panel_starts(weight.shape[2], isa)[-1], np.int32)
    offsets[: weight.shape[2]] = -BIAS * weight.sum((0, 1), dtype=np.int32)
    return offsets


def unpack_taps(packed: Bytes, taps: int, depth: int, n: int, fields: Fields) -> Bytes:
    """Return the weight [taps, depth, n] that `pack_taps` has packed."""
    isa = fields.isa
    starts = panel_starts(n, isa)
    runs, at = taps * fields.runs(depth), 0
    columns: list[Bytes] = []
    for a, b in pairwise(starts):
        size = runs * fields.run_vectors * isa.step * (b - a)
        stored = packed[at : at + size].view(np.uint8)
        stored = stored.reshape(runs, fields.run_vectors, (b - a) * isa.step)
        steps = fields.part(stored).reshape(runs, fields.run, b - a, isa.step).swapaxes(2, 3)
        columns.append(fields.weight(steps).reshape(taps, fields.runs(depth) * fields.unit, b - a))
        at += size
    return np.concatenate(columns, 2)[:, _cells(depth, isa), :n]


def _cells(depth: int, isa: Isa) -> list[int]:
    """Return where in its steps each number of a tap stands."""
    tail = depth % isa.step
    shift = isa.step - tail if tail and depth > isa.step else 0
    return [k if k < depth - tail else k + shift for k in range(depth)]


@cache
def widen(isa: Isa) -> Function:
    """Return the function that copies rows shorter than a step to `room`, padded with zeros."""
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
