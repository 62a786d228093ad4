"""Weights in flash are read back as what they were, field by field."""

from __future__ import annotations

import numpy as np
import pytest

from fewbit.targets.mcu.core import Family
from fewbit.targets.mcu.layout import VECTOR, Layout, stored_bits


def element(layout: Layout, data: bytes, k: int, place: tuple[int, int, int]) -> int:
    """Read element `place[2]` of channel `place[1]` in block `place[0]`, as kernels do."""
    block, column, index = place
    step, part = divmod(index, layout.step)
    chunk = layout.chunk_bytes
    start = block * layout.block_bytes(k) + (step * layout.columns + column) * chunk
    bits = int.from_bytes(data[start : start + chunk], "little")
    shift = part * layout.bits
    if layout.family == "dsp":
        group, within = divmod(part, 4)
        pair = 2 * group + within % 2
        shift = pair * layout.bits + 16 * (within // 2)
    if layout.family == "mve":
        run, byte = divmod(part, VECTOR)
        shift = 8 * byte + run * layout.bits
    field = bits >> shift & (1 << layout.bits) - 1
    if layout.bits == 1:
        return -1 if field else 1
    if layout.offset:
        return field - layout.offset
    return field - (1 << layout.bits) if field >> layout.bits - 1 else field


@pytest.mark.parametrize("family", ["plain", "dsp", "mve"])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize(("n", "k", "columns"), [(5, 25, 2), (4, 64, 4), (3, 130, 1), (7, 3, 3)])
def test_pack(family: Family, bits: int, n: int, k: int, columns: int) -> None:
    layout = Layout(family, bits, columns)
    random = np.random.default_rng(0)
    weight = random.integers(-(1 << bits - 1), 1 << bits - 1, (n, k))
    if bits == 1:
        weight = np.where(weight < 0, -1, 1)
    data = layout.pack(weight).tobytes()
    assert len(data) == len(layout.starts(n)) * layout.block_bytes(k)
    for block, first in enumerate(layout.starts(n)):
        for column in range(columns):
            read = [element(layout, data, k, (block, column, i)) for i in range(k)]
            assert read == weight[first + column].tolist()


def test_stored_bits() -> None:
    assert [stored_bits(b) for b in range(1, 9)] == [1, 2, 4, 4, 8, 8, 8, 8]
