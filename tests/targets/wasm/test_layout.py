from __future__ import annotations

import numpy as np
import pytest

from fewbit.targets.wasm.kernels.contraction import ACCUMULATORS, shape_of_tile
from fewbit.targets.wasm.kernels.layout import LANES, VectorLayout


@pytest.mark.parametrize("has_bytes", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize(("n", "k"), [(4, 8), (9, 13), (16, 64), (10, 1)])
def test_packed_weights_are_read_back(bits: int, has_bytes: bool, n: int, k: int) -> None:
    layout = VectorLayout(bits, n // LANES if n < 8 else 2, has_bytes)
    random = np.random.default_rng(bits)
    low, high = (-1, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)
    weight = random.integers(low, high + 1, (n, k))
    weight[weight == 0] = 1 if bits == 1 else 0
    packed = layout.pack(weight).view(np.uint8)
    starts = layout.starts(n)
    assert packed.size == len(starts) * layout.block_bytes(k)
    blocks = packed.reshape(len(starts), layout.steps(k), layout.columns, layout.run)
    for start, block in zip(starts, blocks, strict=True):
        for element in range(k):
            step, rest = divmod(element, layout.step)
            part, place = divmod(rest, layout.run)
            field = block[step, :, place] >> part * bits & (1 << bits) - 1
            if bits == 1:
                found = 1 - 2 * field.astype(int)
            else:
                found = (field.astype(int) ^ 1 << bits - 1) - (1 << bits - 1)
            assert np.array_equal(found, weight[start : start + layout.columns, element])


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_that_count_from_0_have_no_sign(bits: int) -> None:
    offset = min(1 << bits - 1, 64)
    layout = VectorLayout(bits, 1, has_bytes=True, offset=offset)
    weight = np.full((4, layout.step), -offset)
    weight[1] = offset - 1
    packed = layout.pack(weight).view(np.uint8).reshape(LANES, layout.run)
    assert np.array_equal(packed[0], np.zeros(layout.run))
    most = sum((2 * offset - 1) << bits * part for part in range(layout.parts))
    assert np.array_equal(packed[1], np.full(layout.run, most))


@pytest.mark.parametrize(("rows", "n"), [(1, 4), (1, 10), (125, 64), (7, 5), (64, 1000)])
def test_shape_of_tile_fits(rows: int, n: int) -> None:
    tall, vectors = shape_of_tile(rows, n, exact=False)
    assert 1 <= tall <= rows
    assert LANES * vectors <= n
    assert tall * vectors <= ACCUMULATORS


def test_exact_tiles_compute_nothing_twice() -> None:
    tall, vectors = shape_of_tile(125, 12, exact=True)
    assert 125 % tall == 0
    assert 12 % (LANES * vectors) == 0
