"""Rows, columns and sums of products."""

from __future__ import annotations

from dataclasses import replace

from fewbit.tune.roles import roles_of
from tests.analysis.loops.nests import convolution, product


def test_a_product() -> None:
    roles = roles_of(product(4, 32, 8))
    assert roles is not None
    assert (roles.columns, roles.rows, roles.sums, roles.inner) == (1, (0,), (2,), 2)
    assert not roles.transposed
    assert not roles.windows


def test_weights_that_lie_across() -> None:
    nest = product(4, 32, 8)
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
    assert roles_of(replace(product(4, 4, 4), multiplies=0)) is None
