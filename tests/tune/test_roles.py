"""Rows, columns and sums of products."""

from __future__ import annotations

from dataclasses import replace

from fewbit.cost.loops import Access, Index, Loop, LoopNest
from fewbit.tune.roles import roles_of
from tests.cost.loops.nests import BODY, convolution, matmul


def test_a_product() -> None:
    roles = roles_of(matmul(4, 32, 8))
    assert roles is not None
    assert (roles.columns, roles.rows, roles.sums, roles.inner) == (1, (0,), (2,), 2)
    assert not roles.transposed
    assert not roles.windows


def test_weights_that_lie_across() -> None:
    nest = matmul(4, 32, 8)
    x, w, y = nest.accesses
    assert w.indices is not None
    across = replace(w, shape=w.shape[::-1], indices=w.indices[::-1])
    roles = roles_of(replace(nest, accesses=(x, across, y)))
    assert roles is not None
    assert roles.transposed


def test_a_window_is_bound_to_its_row() -> None:
    roles = roles_of(convolution(8, 16, 2, 1))
    assert roles is not None
    assert roles.windows == {2}


def test_no_product() -> None:
    assert roles_of(replace(matmul(4, 4, 4), multiplies=0)) is None


def test_rows_with_weights_of_their_own() -> None:
    nest = matmul(4, 32, 8)
    x, w, y = nest.accesses
    assert w.indices is not None
    batched = replace(w, shape=(4, *w.shape), indices=(Index((1, 0, 0)), *w.indices))
    roles = roles_of(replace(nest, accesses=(x, batched, y)))
    assert roles is not None
    assert roles.batches == {0}


def test_channels_that_lie_apart() -> None:
    """An image of channels first, which a compiler does not make vectors of."""
    loops = (*convolution(8, 16, 1, 1).loops, Loop(4, "reduction"))
    window, channel = Index((1, 0, 1, 0)), Index((0, 0, 0, 1))
    columns, taps, row = (Index(tuple(int(i == n) for i in range(4))) for n in (1, 2, 0))
    for first, shape in ((False, (10, 4)), (True, (4, 10))):
        indices = (channel, window) if first else (window, channel)
        accesses = (
            Access("input", "f32", 32, shape, indices),
            Access("input", "f32", 32, (3, 4, 16), (taps, channel, columns)),
            Access("output", "f32", 32, (8, 16), (row, columns)),
        )
        roles = roles_of(LoopNest("conv", loops, accesses, BODY, 1))
        assert roles is not None
        assert roles.scattered is first
