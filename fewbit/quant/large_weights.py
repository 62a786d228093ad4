"""Weights that are too large to be held as floats: quantized and packed some rows at a time.

The table of a language model is by far its largest weight. Where rows have scales of their own, a
row's integers depend on that row alone, so the numbers are those of the whole; what comes of them
lies in a temporary file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fewbit.base.spool import Spool
from fewbit.numerics import Quantized, Width, pack
from fewbit.numerics.arrays import Float32Array, Int8Array, UInt8Array
from fewbit.numerics.packing import row_bytes
from fewbit.numerics.quantized import join_rows
from fewbit.program.store import BLOCK
from fewbit.quant.scheme import LayerScheme


def has_own_scales(scheme: LayerScheme, shape: tuple[int, ...]) -> bool:
    """Return whether each row of a matrix has scales of its own."""
    return len(shape) == 2 and scheme.granularity != "tensor"


def quantize_by_rows(
    blocks: Iterable[Float32Array], shape: tuple[int, ...], scheme: LayerScheme, spool: Spool
) -> Quantized:
    """Quantize a matrix of which some rows are given at a time."""
    values, start = spool.empty(shape, np.int8), 0
    parts: list[Quantized] = []
    for block in blocks:
        part, rows = scheme.quantize_weight(block), slice(start, start + len(block))
        values[rows] = part.values
        parts.append(replace(part, values=values[rows]))
        start = rows.stop
    return join_rows(values, parts)


def pack_by_rows(rows: Int8Array, width: Width, spool: Spool) -> UInt8Array:
    """Pack rows of integers."""
    if rows.nbytes <= BLOCK:
        return pack(rows, width)
    packed = spool.empty((len(rows), row_bytes(rows.shape[1], width)), np.uint8)
    count = max(1, BLOCK // rows.shape[1])
    for start in range(0, len(rows), count):
        packed[start : start + count] = pack(rows[start : start + count], width)
    return packed
