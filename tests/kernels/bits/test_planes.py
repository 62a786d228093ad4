"""Planes hold the weights that were put into them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fewbit.kernels import BitConv2d, BitMatmul, Isa
from fewbit.toolchain.isa import names


@given(
    name=st.sampled_from(names()),
    bits=st.integers(1, 7),
    shape=st.tuples(*(st.integers(1, most) for most in (70, 70, 3, 3))),
    seed=st.integers(0, 2**32),
)
def test_unpacks_what_is_packed(
    name: str, bits: int, shape: tuple[int, int, int, int], seed: int
) -> None:
    isa, most = Isa.of(name), 1 << bits >> 1
    numbers = np.random.default_rng(seed).integers(-most, most, shape).astype(np.int8)
    weight = np.where(numbers < 0, -1, 1).astype(np.int8) if bits == 1 else numbers
    image = BitConv2d(isa, "i32", 1, bits)
    assert np.array_equal(image.unpack(image.pack(weight), *shape), weight)
    matrix, matmul = weight[:, :, 0, 0], BitMatmul(isa, "i32", 1, bits)
    assert np.array_equal(matmul.unpack(matmul.pack(matrix), *shape[:2]), matrix)


def test_bits_take_their_room() -> None:
    weight = np.ones((128, 4096), np.int8)
    packed = BitMatmul(Isa.of("x86-64-v4")).pack(weight)
    assert packed.nbytes == weight.size // 8 + 4 * 128
