"""Rows rounded by all threads together: the bits of `fewbit.numerics`, at any number of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fewbit.errors import WidthError
from fewbit.kernels import Isa, RoundRows
from fewbit.kernels.largest_magnitudes import PLACES
from fewbit.numerics.activations import quantize_activation
from fewbit.numerics.mean_magnitude import LANES, PARTS
from tests.kernels.machine import QUANTIZED, address, compiled_phases, guarded, on_threads
from tests.numerics.ties import runs_at_ties

UNTOUCHED = 77


def places(m: int, bits: float) -> NDArray[Any]:
    """Return where the first phase leaves what it has found in m rows."""
    return np.zeros((m, PARTS, LANES)) if bits <= 2 else np.zeros((m, PLACES), np.int32)


@settings(max_examples=80)
@given(
    m=st.integers(1, 3),
    k=st.integers(1, 500),
    bits=st.sampled_from(QUANTIZED),
    gap=st.integers(0, 2),
    threads=st.integers(1, 5),
    exponent=st.integers(-45, 38),
    seed=st.integers(0, 2**32),
)
def test_as_the_numerics(
    isa: Isa, m: int, k: int, bits: float, gap: int, threads: int, exponent: int, seed: int
) -> None:
    x = np.random.default_rng(seed).uniform(-1, 1, (m, k)) * 10.0**exponent
    x = guarded(x.astype(np.float32))
    parts = guarded(places(m, bits))
    q, scale = np.full((m, k + gap), UNTOUCHED, np.int8), np.zeros(m, np.float32)
    find, rounding = compiled_phases(isa)[bits]
    on_threads(threads, lambda t, ts: find(address(x), k, address(parts), m, k, t, ts))
    given = [address(x), k, address(parts), address(q), k + gap, address(scale), m, k]
    on_threads(threads, lambda t, ts: rounding(*given, t, ts))
    expected = quantize_activation(x, bits)
    assert np.array_equal(q[:, :k], expected.values)
    assert scale.tobytes() == expected.scale.tobytes()
    assert (q[:, k:] == UNTOUCHED).all(), "wrote beside the row"


@settings(max_examples=20)
@given(
    k=st.sampled_from([2, 8, 32, 64, 512, 1024, 2048, 16384, 131072]),
    bits=st.sampled_from([1, 1.58, 2]),
    threads=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
def test_means_at_ties(isa: Isa, k: int, bits: float, threads: int, seed: int) -> None:
    x = guarded(runs_at_ties(1, k, seed))
    parts, q, scale = places(1, bits), np.zeros((1, k), np.int8), np.zeros(1, np.float32)
    find, rounding = compiled_phases(isa)[bits]
    on_threads(threads, lambda t, ts: find(address(x), k, address(parts), 1, k, t, ts))
    given = [address(x), k, address(parts), address(q), k, address(scale), 1, k]
    on_threads(threads, lambda t, ts: rounding(*given, t, ts))
    assert scale.tobytes() == quantize_activation(x, bits).scale.tobytes()


@settings(max_examples=80)
@given(
    exponent=st.integers(-15, 30),
    fraction=st.integers(0, 2**23 - 1),
    bits=st.sampled_from([1.58, 2]),
)
def test_next_to_where_the_integer_changes(
    isa: Isa, exponent: int, fraction: int, bits: float
) -> None:
    mean = np.float32((1 + fraction * 2.0**-23) * 2.0**exponent)
    bounds = np.array([-1.5, -0.5, 0.5, 1.5], np.float32)[:, None] * mean
    near = bounds.view(np.int32) + np.arange(-4, 4, dtype=np.int32)
    x = guarded(near.view(np.float32).reshape(1, 32))
    parts, q, scale = places(1, bits), np.zeros((1, 32), np.int8), np.zeros(1, np.float32)
    parts[0, 0, 5] = float(mean) * 32
    given = [address(x), 32, address(parts), address(q), 32, address(scale), 1, 32]
    on_threads(2, lambda t, ts: compiled_phases(isa)[bits][1](*given, t, ts))
    assert scale == mean
    assert np.array_equal(q, quantize_activation(x, bits, scale=scale, granularity="row").values)


@pytest.mark.parametrize("bits", [0, 9])
def test_widths_that_it_has_not(bits: int) -> None:
    with pytest.raises(WidthError):
        RoundRows(Isa.of("x86-64-v4"), bits)
