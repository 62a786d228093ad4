"""Activation quantizers: granularity, static scales, zeros; the formulas are the weights'."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import Error, ShapeError, UsageError, WidthError
from fewbit.numerics import (
    WIDTHS,
    Mode,
    Width,
    bitlinear,
    quantize_activation,
    quantize_weight,
)

widths = st.sampled_from(WIDTHS)
seeds = st.integers(0, 2**32 - 1)
affine = [w for w in WIDTHS if w.precision >= 2]


def normal(seed: int, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@settings(deadline=None)
@given(widths, st.sampled_from(["max", "mean"]), seeds, st.integers(1, 40))
def test_rows_and_samples_follow_the_weight_formulas(width: Width, mode: Mode, seed: int, k: int):
    x = normal(seed, 3, 2, k)
    rows = quantize_activation(x, width, mode=mode)
    per_row = quantize_weight(x.reshape(6, k), width, mode=mode)
    assert rows.scale.shape == (3, 2)
    assert np.array_equal(rows.values.reshape(6, k), per_row.values)
    assert np.array_equal(rows.scale.reshape(6), per_row.scale)

    samples = quantize_activation(x, width, mode=mode, granularity="sample")
    per_sample = quantize_weight(x, width, mode=mode)
    assert samples.scale.shape == (3,)
    assert np.array_equal(samples.values, per_sample.values)
    assert np.array_equal(samples.scale, per_sample.scale)

    whole = quantize_activation(x, width, mode=mode, granularity="tensor")
    assert whole.scale.shape == ()
    assert np.array_equal(
        whole.values, quantize_weight(x, width, mode=mode, granularity="tensor").values
    )


@settings(deadline=None)
@given(st.integers(3, 8), seeds)
def test_rows_are_bit_exact_with_torch(bits: int, seed: int):
    x = normal(seed, 4, 61)
    t = torch.tensor(x)
    top = t.abs().amax(dim=-1, keepdim=True).clamp(min=1e-5)
    multiplier = torch.div(torch.full_like(top, 2 ** (bits - 1) - 1), top)
    values = (t * multiplier).round().clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    q = quantize_activation(x, bits)
    assert np.array_equal(q.values, values.numpy())
    assert np.array_equal(
        q.dequantize(), (values * torch.div(torch.ones_like(top), multiplier)).numpy()
    )


def test_a_token_does_not_depend_on_the_others():
    x = normal(3, 5, 31)
    x[2] *= 1000
    for width in WIDTHS:
        together = quantize_activation(x, width)
        alone = [quantize_activation(row, width) for row in x]
        assert np.array_equal(together.values, np.stack([q.values for q in alone]))
        assert together.scale.tolist() == [float(q.scale) for q in alone]


def test_one_bit_zeros_go_to_plus_one():
    q = quantize_activation([[0.0, -0.0, -2.0, 2.0]], 1)
    assert q.values.tolist() == [[1, 1, -1, 1]]
    assert quantize_activation([0.0, -1.0], 1, scale=3.0).values.tolist() == [1, -1]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_all_zero_rows(width: Width):
    q = quantize_activation([[0.0, 0.0], [1.0, -1.0]], width)
    assert (q.scale > 0).all()
    assert q.values[0].tolist() == ([1, 1] if width.is_binary else [0, 0])


@settings(deadline=None)
@given(st.sampled_from(affine), st.floats(2**-20, 1024, width=32), st.data())
def test_static_follows_round_of_the_quotient(width: Width, scale: float, data: st.DataObject):
    floats = st.floats(-(2.0**100), 2.0**100, width=32) | st.integers(-300, 300).map(
        lambda i: i / 2 * scale
    )
    x = np.array(data.draw(st.lists(floats, min_size=1, max_size=20)), np.float32)
    zero = data.draw(st.none() | st.integers(width.qmin, width.qmax))
    q = quantize_activation(x, width, scale=scale, zero_point=zero)
    quotients = [float(np.float32(v / scale)) for v in x.tolist()]
    expected = [min(max(round(v) + (zero or 0), width.qmin), width.qmax) for v in quotients]
    assert q.values.tolist() == expected
    assert q.scale.shape == ()
    assert (q.zero_point is None) == (zero is None)


def test_static_ties_go_to_the_even_neighbour():
    q = quantize_activation(np.arange(-3.5, 4) / 4, 8, scale=0.25)
    assert q.values.tolist() == [-4, -2, -2, 0, 0, 2, 2, 4]


def test_static_scale_overflow_saturates():
    q = quantize_activation([3e38, -3e38], 8, scale=1e-30)
    assert q.values.tolist() == [127, -128]


def test_static_scales_may_be_one_per_run():
    x = normal(4, 3, 4, 5)
    scale = np.array([0.1, 0.2, 0.4], np.float32)
    zero = np.array([1, 0, -1])
    q = quantize_activation(x, 8, granularity="sample", scale=scale, zero_point=zero)
    for i in range(3):
        alone = quantize_activation(x[i], 8, scale=scale[i], zero_point=int(zero[i]))
        assert np.array_equal(q.values[i], alone.values)
    assert quantize_activation(x, 8, scale=[0.5]).scale.shape == ()


@pytest.mark.parametrize("width", affine, ids=str)
def test_dynamic_asymmetric_has_a_zero_point_per_run(width: Width):
    x = np.abs(normal(5, 4, 50))
    x[:, 0] = 0
    q = quantize_activation(x, width, symmetric=False)
    assert q.zero_point is not None
    assert q.zero_point.tolist() == [width.qmin] * 4
    assert (np.abs(q.dequantize() - x) <= q.scale[:, None] * 1.001).all()
    assert (q.dequantize()[:, 0] == 0).all()


def test_empty_batches_pass_and_empty_rows_do_not():
    assert quantize_activation(np.zeros((0, 8)), 4).scale.shape == (0,)
    assert quantize_activation(np.zeros((0, 8)), 4, symmetric=False).values.shape == (0, 8)
    with pytest.raises(ShapeError, match="empty"):
        quantize_activation(np.zeros((2, 0)), 4)
    with pytest.raises(ShapeError, match="empty"):
        quantize_activation(np.zeros((0, 8)), 4, granularity="tensor")
    assert quantize_activation(np.zeros((2, 0)), 4, scale=1.0).values.shape == (2, 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(bad: float):
    with pytest.raises(Error, match="the activation holds 1 of 2"):
        quantize_activation([bad, 1.0], 8)
    with pytest.raises(Error, match="the activation scale holds"):
        quantize_activation([1.0, 1.0], 8, scale=bad)


def test_calls_that_make_no_sense():
    x = np.ones((2, 4))
    with pytest.raises(UsageError, match="without a scale"):
        quantize_activation(x, 8, zero_point=1)
    with pytest.raises(UsageError, match="needs a zero point"):
        quantize_activation(x, 8, scale=1.0, symmetric=False)
    with pytest.raises(UsageError, match="granularity 'row' with group 4"):
        quantize_activation(x, 8, group=4)
    with pytest.raises(ShapeError, match="groups of 7 do not divide a row"):
        quantize_activation(x, 8, granularity="group", group=7)
    with pytest.raises(UsageError, match="no granularity 'channel'"):
        quantize_activation(x, 8, granularity="channel")  # pyright: ignore[reportArgumentType]
    for scale in (None, 1.0):
        with pytest.raises(UsageError, match="no mode 'nonsense'"):
            quantize_activation(x, 8, mode="nonsense", scale=scale)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="no mode 'nonsense'"):
        quantize_activation(x, 8, mode="nonsense", symmetric=False)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ShapeError, match="scalar"):
        quantize_activation(1.0, 8)
    with pytest.raises(Error, match="positive"):
        quantize_activation(x, 8, scale=0.0)
    with pytest.raises(ShapeError, match="do not fit the granularity"):
        quantize_activation(x, 8, scale=[1.0, 1.0, 1.0])
    with pytest.raises(ShapeError, match="zero points of shape"):
        quantize_activation(x, 8, scale=[1.0, 1.0], zero_point=[1, 2, 3])
    with pytest.raises(WidthError, match="zero points must fit 4 bits"):
        quantize_activation(x, 4, scale=1.0, zero_point=8)
    with pytest.raises(WidthError, match="must hold integers"):
        quantize_activation(x, 4, scale=1.0, zero_point=0.5)
    with pytest.raises(WidthError, match="cannot be asymmetric"):
        quantize_activation(x, 1, symmetric=False)
    with pytest.raises(WidthError, match="cannot be asymmetric"):
        quantize_activation(x, "ternary", scale=1.0, zero_point=0)


@given(widths, st.sampled_from(["max", "mean"]), st.integers(1, 5), st.integers(1, 9))
def test_groups_are_rows_of_their_own(width: Width, mode: Mode, groups: int, size: int) -> None:
    x = normal(size, 2, 3, groups * size)
    q = quantize_activation(x, width, granularity="group", group=size, mode=mode)
    rows = quantize_activation(x.reshape(2, 3, groups, size), width, mode=mode)
    np.testing.assert_array_equal(q.scale, rows.scale)
    np.testing.assert_array_equal(q.values, rows.values.reshape(x.shape))
    np.testing.assert_array_equal(q.dequantize(), rows.dequantize().reshape(x.shape))


def test_activations_and_weights_have_the_same_groups() -> None:
    x, w = normal(0, 3, 12), normal(1, 5, 12)
    xs = quantize_activation(x, 8, granularity="group", group=4)
    ws = quantize_weight(w, 4, granularity="group", group=4)
    parts = [
        bitlinear(
            quantize_activation(x[:, part], 8),
            quantize_weight(w[:, part], 4, granularity="channel"),
        )
        for part in (slice(0, 4), slice(4, 8), slice(8, 12))
    ]
    np.testing.assert_array_equal(bitlinear(xs, ws), parts[0] + parts[1] + parts[2])
    with pytest.raises(ShapeError, match="per group of the weight, of which there are 1"):
        bitlinear(xs, quantize_weight(w, 4))
