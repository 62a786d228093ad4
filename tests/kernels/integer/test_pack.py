"""Packed weights hold the weights, on every processor that kernels are made for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewbit.kernels import IntegerConv2d, IntegerDepthwise, IntegerMatmul, Isa
from fewbit.kernels.integer.pack import packed_bytes
from fewbit.kernels.isa import names

isas = st.sampled_from([Isa.of(name) for name in names()])


@given(isa=isas, n=st.integers(1, 140), k=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_matrix_is_unpacked(isa: Isa, n: int, k: int, seed: int) -> None:
    weight = np.random.default_rng(seed).integers(-128, 128, (n, k)).astype(np.int8)
    packed = IntegerMatmul(isa).pack(weight)
    assert packed.shape == (packed_bytes(1, k, n, isa),)
    assert np.array_equal(IntegerMatmul(isa).unpack(packed, n, k), weight)


@given(
    isa=isas,
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 4), st.integers(1, 4)),
    seed=st.integers(0, 2**32),
)
def test_kernel_is_unpacked(isa: Isa, shape: tuple[int, int, int, int], seed: int) -> None:
    weight = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    packed = IntegerConv2d(isa).pack(weight)
    assert np.array_equal(IntegerConv2d(isa).unpack(packed, *shape), weight)
    channels = weight[:, :1].copy()
    packed = IntegerDepthwise(isa).pack(channels)
    sizes = (shape[0], *shape[2:])
    assert np.array_equal(IntegerDepthwise(isa).unpack(packed, *sizes), channels)
