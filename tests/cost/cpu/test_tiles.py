"""How matmuls are cut, against what the kernels' generators say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fewbit.cost.cpu.tiles import Part, blocks, float_step, integer_step, panels, part, tiles
from fewbit.kernels import Isa

VNNI = Isa.of("x86-64-v4-vnni")


def test_panels_are_about_equally_wide() -> None:
    assert panels(64, VNNI) == (4,)
    assert panels(80, VNNI) == (3, 2)
    assert panels(1, VNNI) == (1,)


@given(rows=st.integers(1, 500), highest=st.integers(1, 12))
def test_tiles_cover_all_rows(rows: int, highest: int) -> None:
    cut = list(tiles(rows, highest, VNNI))
    assert sum(height * count for height, count in cut) == rows
    assert all(0 < height <= highest for height, _ in cut)


@given(rows=st.integers(0, 500), most=st.integers(1, 96))
def test_blocks_cover_all_rows(rows: int, most: int) -> None:
    assert sum(size * count for size, count in blocks(rows, most)) == rows


def test_threads_divide_rows_or_panels() -> None:
    assert part(1, 256, 64, 2, VNNI).panels == (4, 4)
    assert part(65, 192, 64, 2, VNNI) == Part(33, (4, 4, 4))
    assert part(65, 192, 4096, 2, VNNI) == Part(65, (4, 4))
    assert part(100, 64, 64, 2, VNNI).rows == 50
    assert part(101, 64, 64, 2, VNNI).rows == 51
    assert part(100, 64, 64, 1, VNNI).rows == 100


def test_a_step_is_bound_by_products_loads_or_latency() -> None:
    assert integer_step(VNNI, 6, 4) == 12
    assert integer_step(VNNI, 1, 4) == 5
    assert integer_step(VNNI, 1, 4, chains=2) == 2.5
    assert integer_step(VNNI, 4, 4, fields=2) == 12
    assert float_step(VNNI, 6, 4) == 12
    assert float_step(VNNI, 1, 1) == 4
