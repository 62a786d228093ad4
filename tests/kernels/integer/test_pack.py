"""Packed weights hold the weights, on every processor that kernels are made for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewbit.errors import UnsupportedError
from fewbit.kernels import IntegerConv2d, IntegerDepthwise, IntegerMatmul, Isa
from fewbit.kernels.integer.pack import packed_bytes
from fewbit.toolchain.isa import names

isas = st.sampled_from([Isa.of(name) for name in names()])


def some_weights(shape: tuple[int, ...], bits: int, seed: int) -> NDArray[np.int8]:
    rng, most = np.random.default_rng(seed), 1 << bits >> 1
    if bits == 1:
        return rng.choice([-1, 1], shape).astype(np.int8)
    return rng.integers(-most, most, shape).astype(np.int8)


@given(
    isa=isas,
    bits=st.integers(1, 8),
    n=st.integers(1, 140),
    k=st.integers(1, 80),
    seed=st.integers(0, 2**32),
)
def test_matrix_is_unpacked(isa: Isa, bits: int, n: int, k: int, seed: int) -> None:
    weight = some_weights((n, k), bits, seed)
    kernel = IntegerMatmul(isa, "f32", bits)
    packed = kernel.pack(weight)
    assert packed.shape == (packed_bytes(1, k, n, isa, bits),)
    assert np.array_equal(kernel.unpack(packed, n, k), weight)


@given(isa=isas, bits=st.integers(1, 8), groups=st.integers(1, 9), each=st.integers(4, 40))
def test_groups_are_unpacked(isa: Isa, bits: int, groups: int, each: int) -> None:
    weight = some_weights((33, groups * each), bits, each)
    kernel = IntegerMatmul(isa, "f32", bits, grouped=True)
    packed = kernel.pack(weight, groups)
    assert np.array_equal(kernel.unpack(packed, 33, groups * each, groups), weight)


@given(isa=isas, bits=st.integers(1, 8))
def test_bytes_are_in_proportion_to_bits(isa: Isa, bits: int) -> None:
    """They are where nothing has to be filled up."""
    assert packed_bytes(9, 64, 128, isa, bits) == 9 * 64 * 128 * bits // 8


def test_groups_that_no_kernel_takes() -> None:
    weight = np.ones((3, 12), np.int8)
    kernel = IntegerMatmul(Isa.of("x86-64-v4-vnni"), "f32", 4, grouped=True)
    for groups in (5, 6):
        with pytest.raises(UnsupportedError):
            kernel.pack(weight, groups)
    with pytest.raises(UnsupportedError):
        IntegerMatmul(kernel.isa).pack(weight, 3)


@given(
    isa=isas,
    bits=st.integers(1, 8),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 4), st.integers(1, 4)),
    seed=st.integers(0, 2**32),
)
def test_kernel_is_unpacked(
    isa: Isa, bits: int, shape: tuple[int, int, int, int], seed: int
) -> None:
    weight = some_weights(shape, bits, seed)
    kernel = IntegerConv2d(isa, "f32", bits)
    packed = kernel.pack(weight)
    assert np.array_equal(kernel.unpack(packed, *shape), weight)
    channels = weight[:, :1].copy()
    packed = IntegerDepthwise(isa).pack(channels)
    sizes = (shape[0], *shape[2:])
    assert np.array_equal(IntegerDepthwise(isa).unpack(packed, *sizes), channels)
