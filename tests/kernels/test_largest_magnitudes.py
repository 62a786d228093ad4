"""Largest magnitudes, by any number of threads."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import Isa
from fewbit.kernels.largest_magnitudes import PLACES
from fewbit.numerics.formulas import EPS
from tests.kernels.machine import address, compiled_phases, guarded, on_threads


@settings(max_examples=60)
@given(
    m=st.integers(1, 4),
    k=st.integers(1, 500),
    threads=st.integers(1, 5),
    tiny=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_largest_of_each_row(isa: Isa, m: int, k: int, threads: int, tiny: bool, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(m, k)) * (1e-9 if tiny else 1)
    x = guarded(x.astype(np.float32))
    found = guarded(np.full((m, PLACES), -1, np.int32))
    find, _ = compiled_phases(isa)[8]
    on_threads(threads, lambda t, ts: find(address(x), k, address(found), m, k, t, ts))
    assert (found >= 0).all(), "every place is written, by however few threads"
    expected = np.maximum(np.abs(x).max(axis=1), EPS)
    assert np.array_equal(found.view(np.float32).max(axis=1), expected)
