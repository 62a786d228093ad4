"""Weights that another tool has put on fewbit's grid keep their integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.numerics import quantize_weight


@given(bits=st.integers(3, 8), seed=st.integers(0, 2**32 - 1), size=st.integers(1, 40))
def test_full_range_channels_are_quantized_to_themselves(bits: int, seed: int, size: int) -> None:
    generator = np.random.default_rng(seed)
    top = 2 ** (bits - 1) - 1
    integers = generator.integers(-top, top + 1, (6, size))
    integers[:, generator.integers(size)] = generator.choice([-top, top], 6)
    scales = np.exp(generator.uniform(-6, 3, 6)).astype(np.float32)
    weight = integers.astype(np.float32) * scales[:, None]
    quantized = quantize_weight(weight, bits, granularity="channel", mode="max")
    assert np.array_equal(quantized.values, integers)
    assert np.allclose(quantized.scale, scales, rtol=3e-7)


def test_full_range_groups_are_quantized_to_themselves() -> None:
    generator = np.random.default_rng(0)
    integers = generator.integers(-7, 8, (6, 4, 8))
    integers[:, :, 3] = generator.choice([-7, 7], (6, 4))
    scales = np.exp(generator.uniform(-6, 3, (6, 4))).astype(np.float32)
    weight = (integers.astype(np.float32) * scales[:, :, None]).reshape(6, 32)
    quantized = quantize_weight(weight, 4, granularity="group", group=8, mode="max")
    assert np.array_equal(quantized.values, integers.reshape(6, 32))


@pytest.mark.parametrize("largest", [-8, 6])
def test_other_channels_are_not(largest: int) -> None:
    integers = np.array([[largest, 1, 2, -3]], np.float32)
    quantized = quantize_weight(integers * 0.1, 4, granularity="channel", mode="max")
    assert not np.array_equal(quantized.values, integers)
