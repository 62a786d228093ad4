"""Rows are quantized to the bits that `fewbit.numerics` gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import WidthError
from fewbit.kernels import Isa, QuantizeRows
from fewbit.numerics.activations import quantize_activation
from tests.kernels.machine import (
    QUANTIZED,
    Floats,
    address,
    compiled_quantization,
    guarded,
    on_threads,
)
from tests.numerics.ties import runs_at_ties

UNTOUCHED = 77


def check(isa: Isa, x: Floats, bits: float, gap: int, threads: int) -> None:
    """Rows of bytes are `gap` further apart than they must be."""
    m, k = x.shape
    x = guarded(x)
    q, scale = np.full((m, k + gap), UNTOUCHED, np.int8), np.zeros(m, np.float32)
    given = [address(x), k, address(q), k + gap, address(scale), m, k]
    on_threads(threads, lambda t, ts: compiled_quantization(isa)[bits](*given, t, ts))
    expected = quantize_activation(x, bits)
    assert np.array_equal(q[:, :k], expected.values)
    assert scale.tobytes() == expected.scale.tobytes()
    assert (q[:, k:] == UNTOUCHED).all(), "wrote beside the row"


@settings(max_examples=80)
@given(
    m=st.integers(1, 9),
    k=st.integers(1, 300),
    bits=st.sampled_from(QUANTIZED),
    gap=st.integers(0, 2),
    threads=st.integers(1, 3),
    exponent=st.integers(-45, 38),
    seed=st.integers(0, 2**32),
)
def test_as_the_numerics(
    isa: Isa, m: int, k: int, bits: float, gap: int, threads: int, exponent: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.uniform(-1, 1, (m, k)) * 10.0**exponent).astype(np.float32)
    check(isa, x, bits, gap, threads)


@settings(max_examples=80)
@given(
    x=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=40),
    bits=st.sampled_from(QUANTIZED),
)
def test_any_floats(isa: Isa, x: list[float], bits: float) -> None:
    check(isa, np.array([x], np.float32), bits, 0, 1)


@pytest.mark.parametrize("bits", [1, 1.58, 2])
@pytest.mark.parametrize("k", [2, 8, 64, 1024, 4096, 131072])
def test_means_at_ties(isa: Isa, k: int, bits: float) -> None:
    check(isa, runs_at_ties(9, k), bits, 0, 2)


@pytest.mark.parametrize("bits", range(3, 9))
def test_halves_go_to_the_even(isa: Isa, bits: int) -> None:
    most = (1 << bits - 1) - 1
    x = np.arange(-2 * most, 2 * most + 1, dtype=np.float32)[None] * np.float32(0.5)
    check(isa, x, bits, 0, 1)


@pytest.mark.parametrize("bits", QUANTIZED)
def test_zeros(isa: Isa, bits: float) -> None:
    check(isa, np.zeros((2, 70), np.float32), bits, 0, 1)


@pytest.mark.parametrize("bits", [1, 1.58, 2])
def test_halves_of_the_mean(isa: Isa, bits: float) -> None:
    """Magnitudes whose mean is 2: halves of it go to the even, and one bit has no 0."""
    x = np.array([[-5, -3, -1, -0.0, 0.0, 1, 3, 3]], np.float32)
    check(isa, x, bits, 0, 1)


@pytest.mark.parametrize("bits", [0, 9])
def test_widths_that_it_has_not(bits: int) -> None:
    with pytest.raises(WidthError):
        QuantizeRows(Isa.of("x86-64-v4"), bits)
