"""Scales that are fitted to a weight, against scalar Python and on the cases that go wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import ShapeError, UsageError, WidthError
from fewbit.numerics import Quantized, WeightMode, Width, quantize_weight
from fewbit.numerics.fitted_scales import CANDIDATES

WIDE = [Width.of(bits) for bits in range(3, 9)]
runs = st.lists(
    st.floats(-8, 8, width=32) | st.sampled_from([0.0, 1e-30, 0.5, 1.5]), min_size=1, max_size=40
)


def weight(run: list[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.array([run], np.float32)


def error_of(run: np.ndarray[tuple[int, int], np.dtype[np.float32]], scale: float, b: int) -> float:
    """Σ(w - u·s)², rounding in Python's own way."""
    low, high = -(1 << b - 1), (1 << b - 1) - 1
    total = 0.0
    for w in run[0]:
        u = min(max(round(float(w / np.float32(scale))), low), high)
        total += float(w - np.float32(u) * np.float32(scale)) ** 2
    return total


@given(run=runs, width=st.sampled_from(WIDE))
def test_mse_takes_the_candidate_with_the_least_error(run: list[float], width: Width) -> None:
    w = weight(run)
    plain, quantized = quantize_weight(w, width), quantize_weight(w, width, mode="mse")
    largest, chosen = plain.scale[0], quantized.scale[0]
    candidates = [largest * np.float32(c) for c in CANDIDATES]
    assert chosen in candidates
    errors = [error_of(w, scale, width.bits) for scale in candidates]
    assert error_of(w, chosen, width.bits) <= min(errors) * (1 + 1e-9)


def test_of_equal_errors_the_larger_scale_wins() -> None:
    zeros = np.zeros((2, 8), np.float32)
    plain, found = (quantize_weight(zeros, 4, mode=mode) for mode in ("max", "mse"))
    np.testing.assert_array_equal(found.scale, plain.scale)


def test_mse_loses_less_than_max() -> None:
    w = np.random.default_rng(0).standard_normal((32, 256)).astype(np.float32)
    losses = [
        float(np.square(quantize_weight(w, 4, mode=mode).dequantize() - w).sum())
        for mode in ("max", "mse")
    ]
    assert losses[1] < 0.9 * losses[0]


@given(run=runs, width=st.sampled_from(WIDE))
def test_signed_max_uses_the_lowest_level(run: list[float], width: Width) -> None:
    w = weight(run)
    quantized = quantize_weight(w, width, mode="signed-max")
    star = max(run, key=lambda v: (abs(v), v))
    if abs(star) < 1e-5:
        assert quantized.scale[0] == np.float32(1e-5) / np.float32(width.qmin)
        return
    assert quantized.scale[0] == np.float32(star) / np.float32(width.qmin)
    assert quantized.values.min() == width.qmin
    at = np.argmax(np.abs(w[0]) * (np.sign(w[0]) == np.sign(star)))
    assert quantized.dequantize()[0, at] == w[0, at]


def test_groups_have_signs_of_their_own() -> None:
    w = np.array([[1, -8, 4, 7, 8, -1, 0, 0]], np.float32)
    quantized = quantize_weight(w, 4, mode="signed-max", granularity="group", group=4)
    np.testing.assert_array_equal(quantized.scale, [[1, -1]])
    np.testing.assert_array_equal(quantized.values, [[1, -8, 4, 7, -8, 1, 0, 0]])
    np.testing.assert_array_equal(quantized.dequantize(), w)


@pytest.mark.parametrize("mode", ["mse", "signed-max"])
def test_refused(mode: WeightMode) -> None:
    w = np.ones((2, 4), np.float32)
    with pytest.raises(UsageError, match=f"2 bits have no mode '{mode}'"):
        quantize_weight(w, 2, mode=mode)
    with pytest.raises(UsageError, match=f"no mode '{mode}'"):
        quantize_weight(w, 4, mode=mode, symmetric=False)
    with pytest.raises(UsageError, match="there is no mode 'least'"):
        quantize_weight(w, 4, mode="least")  # pyright: ignore[reportArgumentType]


@given(run=runs, width=st.sampled_from([Width.of(2), *WIDE]))
def test_offsets_hold_the_lowest_and_nearly_the_highest(run: list[float], width: Width) -> None:
    w = weight(run)
    quantized = quantize_weight(w, width, mode="offset")
    assert quantized.offset is not None
    values, step = quantized.dequantize(), quantized.scale.max()
    assert quantized.offset[0] == w.min()
    assert values[0, w.argmin()] == w.min()
    assert np.abs(values - w).max() <= step * 0.5001 + np.abs(w).max() * 1e-6


def test_offsets_by_hand() -> None:
    w = np.array([[1, 2, 3, 4, -7, -4, -1, 2]], np.float32)
    quantized = quantize_weight(w, 2, mode="offset", granularity="group", group=4)
    np.testing.assert_array_equal(quantized.offset, [[1, -7]])
    np.testing.assert_array_equal(quantized.scale, [[1, 3]])
    np.testing.assert_array_equal(quantized.values, [[-2, -1, 0, 1, -2, -1, 0, 1]])
    np.testing.assert_array_equal(quantized.dequantize(), w)


def test_refused_offsets() -> None:
    with pytest.raises(WidthError, match=r"1\.58 bits have no offset"):
        quantize_weight(np.ones((2, 4), np.float32), 1.58, mode="offset")
    values, scale = np.zeros((2, 4), np.int8), np.ones(2, np.float32)
    with pytest.raises(ShapeError, match="offsets of shape"):
        Quantized(values, scale, None, Width.of(4), np.ones(1, np.float32))
    with pytest.raises(WidthError, match="not both"):
        Quantized(values, scale, np.zeros(2, np.int32), Width.of(4), scale)
