"""A matrix of bytes that a run packs is as one that was packed before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.kernels import IntegerMatmul, IntegerPackB, Isa
from tests.kernels.machine import address, compiled, guarded, on_threads


@settings(max_examples=60)
@given(
    n=st.integers(1, 150),
    k=st.integers(1, 140),
    in_rows=st.booleans(),
    threads=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_packed(isa: Isa, n: int, k: int, in_rows: bool, threads: int, seed: int) -> None:
    weight = np.random.default_rng(seed).integers(-128, 128, (n, k)).astype(np.int8)
    wanted = IntegerMatmul(isa).pack(weight)
    given = guarded(weight if in_rows else np.ascontiguousarray(weight.T))
    strides = (1, k) if in_rows else (n, 1)
    packed = guarded(np.full(wanted.size, 77, np.int8))

    def call(thread: int, threads: int) -> None:
        compiled(isa)[IntegerPackB](
            address(given), *strides, address(packed), k, n, thread, threads
        )

    on_threads(threads, call)
    assert np.array_equal(packed, wanted)
