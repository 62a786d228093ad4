"""Which nests are tiled, and how, without any IR."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from fewbit.passes.loops.tile_sizes import (
    BLOCK,
    LANES,
    STEP,
    WORTH_TILING,
    Access,
    Kind,
    Nest,
    affine_tiles,
    choose_tiling,
)

Sizes = tuple[int | None, ...]


def access(sizes: Sizes, loops: tuple[int, ...], width: int = 4) -> Access:
    """A dense array whose axes are these loops."""
    strides, step = [0] * len(sizes), 1
    for loop in reversed(loops):
        strides[loop] = step
        step *= sizes[loop] or 1000
    return Access(tuple(strides), width)


def copy(sizes: Sizes, read: tuple[int, ...], *, plain: bool = True) -> Nest:
    """Return a nest that writes in the order of loops, and reads in another."""
    kinds: tuple[Kind, ...] = ("parallel",) * len(sizes)
    written = access(sizes, tuple(range(len(sizes))))
    return Nest(kinds, sizes, (access(sizes, read),), (written,), True, plain)


def product(sizes: Sizes, right: tuple[int, int] = (2, 1), *, floats: bool = True) -> Nest:
    reads = (access(sizes, (0, 2)), access(sizes, right))
    kinds: tuple[Kind, ...] = ("parallel", "parallel", "reduction")
    return Nest(kinds, sizes, reads, (access(sizes, (0, 1)),), floats, True)


def test_a_transpose_has_blocks() -> None:
    tiling = choose_tiling(copy((1024, 1024), (1, 0)))
    assert tiling is not None
    assert tiling.order == (0, 1)
    assert tiling.tiles == (32, 128)
    assert tiling.blocks == (BLOCK, BLOCK)
    assert tiling.shared == 0


def test_loops_that_are_not_turned_are_outside() -> None:
    tiling = choose_tiling(copy((64, 100, 96), (2, 1, 0)))
    assert tiling is not None
    assert tiling.order == (1, 0, 2)
    assert (tiling.tiles[0], tiling.blocks) == (1, (1, BLOCK, BLOCK))
    assert tiling.shared == 0


def test_sizes_of_the_run_are_tiled() -> None:
    tiling = choose_tiling(copy((None, None), (1, 0)))
    assert tiling is not None
    assert tiling.shared == 0


def test_what_streams_is_left() -> None:
    assert choose_tiling(copy((512, 512), (0, 1))) is None
    # Heads change places, and rows of them stay whole.
    assert choose_tiling(copy((197, 12, 64), (1, 0, 2))) is None


def test_what_is_small_or_thin_is_left() -> None:
    assert choose_tiling(copy((32, 32), (1, 0))) is None
    assert choose_tiling(copy((4096, 3), (1, 0))) is None
    assert choose_tiling(copy((0, 4096), (1, 0))) is None


def test_a_transpose_that_cannot_be_vectors_is_left() -> None:
    assert choose_tiling(copy((1024, 1024), (1, 0), plain=False)) is None


def test_a_product_has_its_sum_inside() -> None:
    tiling = choose_tiling(product((256, 256, 256)))
    assert tiling is not None
    assert tiling.order == (1, 0, 2)
    assert tiling.tiles == (LANES, 1, STEP)
    assert tiling.shared == 1  # of 4 tiles of columns and 256 rows


def test_a_product_with_a_transposed_factor_is_left() -> None:
    assert choose_tiling(product((256, 256, 256), right=(1, 2))) is None


def test_integers_are_summed_as_they_lie() -> None:
    assert choose_tiling(product((256, 256, 256), right=(1, 2), floats=False)) is None
    assert choose_tiling(product((256, 256, 256), floats=False)) is not None


def test_sums_of_columns_are_shared_by_columns() -> None:
    sizes: Sizes = (40, 1000)
    read = Access((1, 40), 4)
    nest = Nest(("parallel", "reduction"), sizes, (read,), (Access((1, 0), 4),), True, True)
    tiling = choose_tiling(nest)
    assert tiling is not None
    assert tiling.order == (0, 1)
    assert tiling.tiles == (16, STEP)
    assert tiling.shared == 0


def test_sums_of_rows_stream() -> None:
    read, written = access((64, 512), (0, 1)), access((64, 512), (0,))
    nest = Nest(("parallel", "reduction"), (64, 512), (read,), (written,), True, True)
    assert choose_tiling(nest) is None
    assert affine_tiles(nest) is None


def test_indices_with_quotients_are_for_affine_loops() -> None:
    kinds: tuple[Kind, ...] = ("parallel", "parallel")
    read, written = Access((1 << 16, 512), 4), access((512, 512), (0, 1))
    nest = Nest(kinds, (512, 512), (read,), (written,), True, True, linear=False)
    assert choose_tiling(nest) is None
    assert affine_tiles(nest) == (32, 32)


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    rank = draw(st.integers(2, 5))
    sizes = tuple(draw(st.lists(st.none() | st.integers(0, 300), min_size=rank, max_size=rank)))
    kind: st.SearchStrategy[Kind] = st.sampled_from(("parallel", "reduction"))
    kinds = tuple(draw(st.lists(kind, min_size=rank, max_size=rank)))
    parallel = [loop for loop in range(rank) if kinds[loop] == "parallel"]
    subsets = st.permutations(range(rank)).flatmap(
        lambda loops: st.integers(0, rank).map(lambda n: tuple(loops[:n]))
    )
    reads = [access(sizes, draw(subsets)) for _ in range(draw(st.integers(1, 3)))]
    written = access(sizes, tuple(draw(st.permutations(parallel))))
    return Nest(kinds, sizes, tuple(reads), (written,), draw(st.booleans()), draw(st.booleans()))


@given(nests())
def test_sums_keep_their_order_and_threads_share_no_sum(nest: Nest) -> None:
    tiling = choose_tiling(nest)
    if tiling is None:
        return
    assert None in nest.sizes or prod(size or 1 for size in nest.sizes) >= WORTH_TILING
    assert sorted(tiling.order) == list(range(len(nest.kinds)))
    sums = [loop for loop in tiling.order if nest.kinds[loop] == "reduction"]
    assert sums == nest.loops("reduction")
    # Only the last sum is cut: tiles of two would be summed tile by tile.
    tiles = dict(zip(tiling.order, tiling.tiles, strict=True))
    assert all(tiles[loop] == 1 for loop in sums[:-1])
    tiled = [loop for loop in tiling.order if tiles[loop]]
    assert tiling.shared is not None
    assert nest.kinds[tiled[tiling.shared]] == "parallel"
