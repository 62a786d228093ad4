"""Tiles never exceed the memories, and cover what they are tiles of."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.gemmini.tiler import ConvShape, parts, tile_conv, tile_matmul

machines = st.builds(
    Hardware,
    dim=st.sampled_from([4, 8, 16, 32]),
    scratchpad_rows=st.sampled_from([2048, 4096, 16384]),
    accumulator_rows=st.sampled_from([256, 512, 1024]),
)
sizes = st.integers(1, 5000)


@given(machines, sizes, sizes, sizes)
def test_tiles_of_products_fit(hardware: Hardware, m: int, n: int, k: int) -> None:
    tile = tile_matmul(m, n, k, hardware)
    assert tile.scratchpad_rows(hardware) <= hardware.half_scratchpad
    assert tile.accumulator_rows(hardware) <= hardware.half_accumulator
    for blocks, size in zip((tile.i, tile.j, tile.k), (m, n, k), strict=True):
        assert 1 <= blocks <= hardware.blocks(size)


@st.composite
def shapes(draw: st.DrawFn) -> ConvShape:
    kh, kw = draw(st.integers(1, 11)), draw(st.integers(1, 11))
    pool = draw(st.sampled_from([1, 2, 3]))
    height, width = draw(st.integers(kh + pool, 230)), draw(st.integers(kw + pool, 230))
    pads = [draw(st.integers(0, k - 1)) for k in (kh, kw, kh, kw)]
    return ConvShape(
        1, height, width, draw(st.integers(1, 600)), draw(st.integers(1, 600)), kh, kw,
        1, *pads, pool=pool, pool_stride=pool,
    )  # fmt: skip


@settings(deadline=None)
@given(shapes())
def test_tiles_of_convolutions_fit(shape: ConvShape) -> None:
    hardware = Hardware()
    tile = tile_conv(shape, hardware)
    assert tile.scratchpad_rows(shape, hardware) <= hardware.half_scratchpad
    assert tile.accumulator_rows(shape, hardware) <= hardware.half_accumulator
    assert 1 <= tile.rows <= shape.pooled_height
    assert 1 <= tile.cols <= shape.pooled_width


@given(st.integers(1, 100), st.integers(1, 100))
def test_parts_cover_a_dimension_once(size: int, step: int) -> None:
    covered = [n for start, count in parts(size, step) for n in range(start, start + count)]
    assert covered == list(range(size))


def test_what_fits_is_one_tile() -> None:
    tile = tile_matmul(64, 128, 256, Hardware())
    assert (tile.i, tile.j, tile.k) == (4, 8, 16)


def test_what_no_tile_holds_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no tile"):
        tile_conv(ConvShape(1, 300, 300, 1, 1, 128, 128), Hardware())
