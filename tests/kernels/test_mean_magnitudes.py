"""Sums of magnitudes, by any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import Isa
from fewbit.numerics.mean_magnitude import LANES, PARTS
from tests.kernels.machine import address, compiled_phases, guarded, on_threads


@settings(max_examples=40)
@given(
    m=st.integers(1, 4),
    k=st.one_of(st.integers(1, 500), st.integers(5000, 80000)),
    threads=st.integers(2, 5),
    seed=st.integers(0, 2**32),
)
def test_sums_of_each_row(isa: Isa, m: int, k: int, threads: int, seed: int) -> None:
    x = guarded(np.random.default_rng(seed).standard_normal((m, k), np.float32))
    find, _ = compiled_phases(isa)[2]
    found: list[bytes] = []
    for count in (1, threads):
        sums = guarded(np.zeros((m, PARTS, LANES)))
        on_threads(count, lambda t, ts, sums=sums: find(address(x), k, address(sums), m, k, t, ts))
        expected = np.abs(x).astype(np.float64).sum(axis=1)
        assert sums.sum(axis=(1, 2)) == pytest.approx(expected, rel=1e-13)
        found.append(sums.tobytes())
    assert found[0] == found[1]
