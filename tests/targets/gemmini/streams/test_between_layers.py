"""Pooling, sums of layers and transposes on the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.targets.gemmini.streams.max_pool import MaxPool, max_pool
from fewbit.targets.gemmini.streams.output import I32, Output
from fewbit.targets.gemmini.streams.residual import residual_add
from fewbit.targets.gemmini.streams.transpose import transpose
from tests.targets.gemmini.dram import requantized, run_stream, some
from tests.targets.gemmini.streams.test_conv2d import pooled


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(3, 40), st.integers(3, 70), st.integers(1, 40)
)
def test_the_largest_of_windows(
    size: int, stride: int, height: int, width: int, channels: int
) -> None:
    x = some(np.random.default_rng(height), 2, height, width, channels)
    pool = MaxPool(2, height, width, channels, size, stride)
    wanted = pooled(x, size, stride)
    y = np.zeros(wanted.shape, np.int8)
    run_stream(max_pool(pool), y, x=x)
    assert np.array_equal(y, wanted)


def test_what_pooling_cannot_do_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="up to 3 pixels"):
        max_pool(MaxPool(1, 8, 8, 4, 4, 4))
    with pytest.raises(UnsupportedError, match="too wide"):
        max_pool(MaxPool(1, 8, 300, 4, 2, 2))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.booleans(), st.booleans())
def test_sums_of_two_tensors(rows: int, cols: int, full: bool, relu: bool) -> None:
    rng = np.random.default_rng(rows)
    a, b = some(rng, rows, cols), some(rng, rows, cols)
    scales = (0.5, 0.25)
    sums = requantized(a, 0.5).astype(np.int32) + requantized(b, 0.25)
    y = np.zeros((rows, cols), np.int32 if full else np.int8)
    output = I32 if full else Output(0.7, relu)
    run_stream(
        residual_add(rows, cols, a_scale=scales[0], b_scale=scales[1], output=output), y, a=a, b=b
    )
    assert np.array_equal(y, sums if full else requantized(sums, 0.7, relu))


def test_sums_with_whole_scales_are_exact() -> None:
    rng = np.random.default_rng(0)
    a, b = some(rng, 50, 30), some(rng, 50, 30)
    y = np.zeros((50, 30), np.int32)
    run_stream(residual_add(50, 30), y, a=a, b=b)
    assert np.array_equal(y, a.astype(np.int32) + b)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 50), st.integers(1, 50))
def test_transposes(rows: int, cols: int) -> None:
    x = some(np.random.default_rng(cols), rows, cols)
    y = np.zeros((cols, rows), np.int8)
    run_stream(transpose(rows, cols), y, x=x, identity=np.eye(16, dtype=np.int8))
    assert np.array_equal(y, x.T)
