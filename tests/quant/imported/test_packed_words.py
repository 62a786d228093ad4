"""Packed layers of GPTQ and AWQ: every integer, zero point and scale is found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import ShapeError, UnsupportedError, WidthError
from fewbit.quant.imported.packed_words import PackedLayer, read_awq, read_gptq, unpack_words
from tests.quant.imported import packing

SEEDS = st.integers(0, 2**32 - 1)


@given(bits=st.sampled_from([2, 3, 4, 5, 6, 7, 8]), seed=SEEDS)
@settings(max_examples=30)
def test_words(bits: int, seed: int) -> None:
    fields = np.random.default_rng(seed).integers(0, 2**bits, (3, 64))
    packed = packing.as_int32([packing.words(list(row), bits) for row in fields])
    np.testing.assert_array_equal(unpack_words(packed, bits), fields)


@given(
    bits=st.sampled_from([2, 3, 4, 8]),
    version=st.sampled_from([1, 2]),
    groups=st.sampled_from([1, 2, 4]),
    seed=SEEDS,
)
@settings(max_examples=30)
def test_gptq(bits: int, version: int, groups: int, seed: int) -> None:
    u, z, s = packing.random_layer(np.random.default_rng(seed), 32, 64, groups, bits)
    layer = PackedLayer(**packing.gptq(u, z, s, bits, version=version))
    weight = read_gptq(layer, 64, stored_zero=1 if version == 1 else 0)
    half = 2 ** (bits - 1)
    assert weight.width.bits == bits
    np.testing.assert_array_equal(weight.values, u - half)
    np.testing.assert_array_equal(weight.scale.reshape(s.shape), s)
    np.testing.assert_array_equal(weight.dequantize(), packing.values(u, z, s))


@given(groups=st.sampled_from([1, 2, 4]), seed=SEEDS)
@settings(max_examples=20)
def test_awq(groups: int, seed: int) -> None:
    u, z, s = packing.random_layer(np.random.default_rng(seed), 16, 24, groups, 4)
    weight = read_awq(PackedLayer(**packing.awq(u, z, s)), 24)
    np.testing.assert_array_equal(weight.values, u - 8)
    np.testing.assert_array_equal(weight.dequantize(), packing.values(u, z, s))


def layer(**changed: object) -> PackedLayer:
    u, z, s = packing.random_layer(np.random.default_rng(0), 32, 64, 2, 4)
    return PackedLayer(**(packing.gptq(u, z, s, 4) | changed))  # pyright: ignore[reportArgumentType]


def test_a_middle_zero_point_is_none() -> None:
    u, z, s = packing.random_layer(np.random.default_rng(0), 32, 64, 2, 4)
    made = PackedLayer(**packing.gptq(u, np.full_like(z, 8), s, 4))
    assert read_gptq(made, 64, stored_zero=1).zero_point is None


def test_act_order_is_refused() -> None:
    shuffled = np.random.default_rng(0).permutation(np.arange(64) // 32).astype(np.int32)
    with pytest.raises(UnsupportedError, match="act-order"):
        read_gptq(layer(g_idx=shuffled), 64, stored_zero=1)


def test_groups_may_be_unnamed() -> None:
    read_gptq(layer(g_idx=None), 64, stored_zero=1)


def test_a_zero_point_past_the_range_is_refused() -> None:
    """Version 1 cannot say 0: a tool that stores 15 for it means 16 to the next."""
    full = np.full((2, 4), -1, np.int32)
    with pytest.raises(WidthError, match="zero points from 16"):
        read_gptq(layer(qzeros=full), 64, stored_zero=1)


@pytest.mark.parametrize(
    "changed",
    [
        {"qzeros": np.zeros((2, 5), np.int32)},
        {"qzeros": np.zeros((2, 4), np.int64)},
        {"scales": np.ones((2, 31), np.float16)},
        {"scales": np.ones((3, 32), np.float16)},
        {"g_idx": np.zeros(63, np.int32)},
        {"qweight": np.zeros((9, 32), np.int32)},
        {"qweight": np.zeros((8, 32), np.float32)},
        {"qweight": np.zeros((0, 32), np.int32)},
    ],
)
def test_tensors_that_do_not_fit_are_refused(changed: dict[str, object]) -> None:
    with pytest.raises(ShapeError):
        read_gptq(layer(**changed), 64, stored_zero=1)


def test_an_awq_layer_in_another_layout_is_refused() -> None:
    u, z, s = packing.random_layer(np.random.default_rng(0), 16, 24, 1, 4)
    packed = packing.awq(u, z, s)
    with pytest.raises(ShapeError, match="gemm"):
        read_awq(PackedLayer(**packed), 32)
