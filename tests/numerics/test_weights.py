"""Weight quantizers against scalar Python, against torch, and on the cases that go wrong."""

from __future__ import annotations

import math
import struct

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import Error, ShapeError, UsageError, WidthError
from fewbit.numerics import WIDTHS, Granularity, Mode, Width, quantize_weight
from fewbit.numerics.formulas import with_scale
from fewbit.numerics.mean_magnitude import LANES, PART, PARTS, mean_magnitude
from tests.numerics.ties import runs_at_ties

widths = st.sampled_from(WIDTHS)
wide = st.sampled_from([w for w in WIDTHS if w.bits > 2])
modes: st.SearchStrategy[Mode] = st.sampled_from(["max", "mean"])
float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
ordinary = st.floats(-8, 8, width=32)
special = st.sampled_from([0.0, -0.0, 1e-30, -1e-30, 1e-45, 1e30, -1e30, 3.4e38, 1e-5, 0.5, 1.5])
numbers = ordinary | special | float32s


def f32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def quantized_run(run: list[float], width: Width, mode: Mode) -> tuple[list[int], float]:
    """The table of formulas on Python floats, every operation rounded to float32."""
    mean = float(mean_magnitude(np.array([run], np.float32))[0])
    use_mean = mode == "mean" or width.bits <= 2
    denominator = max(mean if use_mean else max(abs(v) for v in run), f32(1e-5))
    if width.is_binary:
        return [1 if v >= 0 else -1 for v in run], denominator
    if width.bits == 2:
        raw = [round(f32(v / denominator)) for v in run]
        return [min(max(u, width.qmin), width.qmax) for u in raw], denominator
    multiplier = f32(width.qmax / denominator)
    raw = [round(f32(v * multiplier)) for v in run]
    return [min(max(u, width.qmin), width.qmax) for u in raw], f32(1 / multiplier)


@given(st.lists(numbers, min_size=1, max_size=40))
def test_mean_magnitude_is_the_nearest_float32(run: list[float]):
    found = float(mean_magnitude(np.array([run], np.float32))[0])
    exact = math.fsum(abs(v) for v in run) / len(run)
    assert abs(found - f32(exact)) <= np.spacing(np.float32(exact))


def test_mean_magnitude_agrees_with_torch_and_ignores_the_neighbours():
    x = np.random.default_rng(0).standard_normal((7, 200_003)).astype(np.float32)
    found = mean_magnitude(x)
    np.testing.assert_allclose(found, torch.tensor(x).abs().mean(dim=1).numpy(), rtol=1e-6)
    alone = np.concatenate([mean_magnitude(np.ascontiguousarray(row[None])) for row in x])
    assert np.array_equal(found, alone)


@pytest.mark.parametrize("length", [2, 64, 2048, 131072])
def test_mean_magnitude_follows_its_order(length: int):
    """The order written out, one float64 at a time."""
    runs = runs_at_ties(3, length)
    for run, found in zip(runs, mean_magnitude(runs), strict=True):
        part = max(PART, length // PARTS)
        totals = [0.0] * LANES
        for start in range(0, length, part):
            lanes = [0.0] * LANES
            for i, value in enumerate(run[start : start + part].tolist()):
                lanes[i % LANES] += abs(value)
            totals = [total + lane for total, lane in zip(totals, lanes, strict=True)]
        while len(totals) > 1:
            half = len(totals) // 2
            totals = [low + high for low, high in zip(totals[:half], totals[half:], strict=True)]
        assert found == np.float32(totals[0] / length)


@settings(deadline=None)
@given(widths, modes, st.integers(1, 4), st.integers(1, 12), st.data())
def test_channels_follow_the_formulas(
    width: Width, mode: Mode, n: int, k: int, data: st.DataObject
):
    rows = data.draw(st.lists(st.lists(numbers, min_size=k, max_size=k), min_size=n, max_size=n))
    q = quantize_weight(rows, width, mode=mode)
    expected = [quantized_run(row, width, mode) for row in np.array(rows, np.float32).tolist()]
    assert q.values.tolist() == [values for values, _ in expected]
    assert q.scale.tolist() == [scale for _, scale in expected]
    assert (q.scale.shape, q.zero_point, q.width) == ((n,), None, width)


@settings(deadline=None)
@given(widths, modes, st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.data())
def test_tensor_and_groups_are_the_same_formulas_on_other_runs(
    width: Width, mode: Mode, n: int, groups: int, size: int, data: st.DataObject
):
    count = n * groups * size
    flat = data.draw(st.lists(numbers, min_size=count, max_size=count))
    w = np.array(flat, np.float32).reshape(n, groups * size)

    whole = quantize_weight(w, width, mode=mode, granularity="tensor")
    values, scale = quantized_run(w.reshape(-1).tolist(), width, mode)
    assert (whole.values.reshape(-1).tolist(), whole.scale.shape) == (values, ())
    assert float(whole.scale) == scale

    grouped = quantize_weight(w, width, mode=mode, granularity="group", group=size)
    expected = [quantized_run(run, width, mode) for run in w.reshape(-1, size).tolist()]
    assert grouped.values.reshape(-1, size).tolist() == [v for v, _ in expected]
    assert grouped.scale.shape == (n, groups)
    assert grouped.scale.reshape(-1).tolist() == [s for _, s in expected]


@settings(deadline=None)
@given(wide, st.integers(0, 2**32 - 1), st.integers(-40, 37))
def test_max_mode_is_bit_exact_with_torch(width: Width, seed: int, exponent: int):
    w = np.random.default_rng(seed).standard_normal((5, 53)).astype(np.float32)
    w *= np.float32(10.0) ** np.float32(exponent)
    t = torch.tensor(w)
    top = t.abs().amax(dim=1, keepdim=True).clamp(min=1e-5)
    multiplier = torch.div(torch.full_like(top, width.qmax), top)
    values = (t * multiplier).round().clamp(width.qmin, width.qmax)
    scale = torch.div(torch.ones_like(multiplier), multiplier)
    q = quantize_weight(w, width)
    assert np.array_equal(q.values, values.numpy())
    assert np.array_equal(q.scale, scale.numpy()[:, 0])
    assert np.array_equal(q.dequantize(), (values * scale).numpy())


@pytest.mark.parametrize("width", [w for w in WIDTHS if w.bits > 2], ids=str)
def test_ties_go_to_the_even_neighbour(width: Width):
    top = width.qmax
    halves = np.arange(-top, top, dtype=np.float32) + np.float32(0.5)
    q = quantize_weight(np.append(halves, np.float32(top))[None], width)
    assert q.scale.tolist() == [1.0]
    assert q.values[0, :-1].tolist() == [round(h) for h in halves.tolist()]
    assert all(u % 2 == 0 for u in q.values[0, :-1].tolist())


@pytest.mark.parametrize(("width", "low"), [(1.58, -1), (2, -2)])
def test_ties_of_the_narrow_widths(width: float, low: int):
    w = [0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 0.0, -0.0]
    q = quantize_weight([w], width)
    assert q.scale.tolist() == [1.0]
    assert q.values.tolist() == [[0, 0, 1, low, 1, low, 0, 0]]


def test_one_bit_zero_is_plus_one():
    q = quantize_weight([[0.0, -0.0, -1e-45, 3.0]], 1)
    assert q.values.tolist() == [[1, 1, -1, 1]]
    assert q.scale.tolist() == [0.75]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_all_zero_weights(width: Width):
    q = quantize_weight(np.zeros((2, 3)), width)
    assert (q.values == (1 if width.is_binary else 0)).all()
    assert (q.scale > 0).all()
    if width.bits <= 2:
        assert q.scale.tolist() == [f32(1e-5)] * 2


@pytest.mark.parametrize("bits", range(2, 9))
def test_all_zero_asymmetric_weights(bits: int):
    q = quantize_weight(np.zeros((2, 3)), bits, symmetric=False)
    assert (q.scale > 0).all()
    assert (q.dequantize() == 0).all()


@pytest.mark.parametrize("width", [1, 1.58])
def test_the_narrowest_widths_cannot_be_asymmetric(width: float):
    with pytest.raises(WidthError, match="cannot be asymmetric"):
        quantize_weight(np.ones((2, 3)), width, symmetric=False)


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("size", [1e38, 1e30, 1e-30, 1e-45])
def test_extreme_weights_stay_finite(width: Width, size: float):
    w = np.array([[size, -size, size / 2, 0]], np.float32)
    q = quantize_weight(w, width)
    assert np.isfinite(q.scale).all()
    assert np.isfinite(q.dequantize()).all()
    if size > 1:
        assert q.values[0, 0] == width.qmax


@pytest.mark.parametrize("granularity", ["tensor", "channel", "group"])
def test_convolution_weights_reduce_over_all_but_the_first_dimension(granularity: Granularity):
    w = np.random.default_rng(1).standard_normal((4, 3, 5, 5)).astype(np.float32)
    group = 25 if granularity == "group" else None
    q = quantize_weight(w, 4, granularity=granularity, group=group)
    flat = quantize_weight(w.reshape(4, 75), 4, granularity=granularity, group=group)
    assert q.values.shape == w.shape
    assert np.array_equal(q.values.reshape(4, 75), flat.values)
    assert np.array_equal(q.scale, flat.scale)
    assert np.array_equal(q.dequantize().reshape(4, 75), flat.dequantize())
    assert q.scale.shape == {"tensor": (), "channel": (4,), "group": (4, 3)}[granularity]


@pytest.mark.parametrize("symmetric", [True, False])
def test_layout_and_float_type_of_the_input_do_not_matter(symmetric: bool):
    w = np.random.default_rng(2).integers(-50, 50, (6, 8)).astype(np.float32) / 16
    reference = quantize_weight(w, 5, symmetric=symmetric)
    others: list[npt.NDArray[np.floating]] = [
        np.asfortranarray(w),
        np.repeat(w, 3, axis=0)[::3],
        w[:, ::-1][:, ::-1],
        w.astype(np.float64),
        w.astype(np.float16),
    ]
    for other in others:
        q = quantize_weight(other, 5, symmetric=symmetric)
        assert np.array_equal(q.values, reference.values)
        assert np.array_equal(q.scale, reference.scale)


@settings(deadline=None)
@given(st.integers(2, 8), st.lists(ordinary | special, min_size=1, max_size=30))
def test_asymmetric_follows_its_formulas(bits: int, run: list[float]):
    run = [f32(v) for v in run]
    q = quantize_weight([run], bits, symmetric=False)
    qmin, qmax = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    low, high = min(*run, 0.0), max(*run, 0.0)
    scale = f32(max(f32(high - low), f32(1e-5)) / ((1 << bits) - 1))
    zero = min(max(round(f32(qmin - f32(low / scale))), qmin), qmax)
    expected = [min(max(round(f32(v / scale)) + zero, qmin), qmax) for v in run]
    assert q.scale.tolist() == [scale]
    assert q.zero_point is not None
    assert q.zero_point.tolist() == [zero]
    assert q.values.tolist() == [expected]


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_asymmetric_error_is_at_most_one_step_and_zero_is_exact(bits: int, seed: int):
    w = np.random.default_rng(seed).uniform(-1, 3, (3, 40)).astype(np.float32)
    w[:, 7] = 0
    q = quantize_weight(w, bits, symmetric=False, granularity="group", group=20)
    assert q.zero_point is not None
    assert q.zero_point.shape == q.scale.shape == (3, 2)
    steps = np.repeat(q.scale, 20, axis=1)
    assert (np.abs(q.dequantize() - w) <= steps * 1.001).all()
    assert (q.dequantize()[:, 7] == 0).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e300])
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_values_that_are_not_finite_are_refused(width: Width, bad: float):
    with pytest.raises(Error, match="1 of 4 values that are not finite"):
        quantize_weight([[1.0, bad], [0.0, 1.0]], width)


def test_asymmetric_range_beyond_float32_is_refused():
    with pytest.raises(Error, match="range"):
        quantize_weight([[3e38, -3e38]], 8, symmetric=False)


@pytest.mark.parametrize("group", [7, 0, -5, 50])
def test_groups_must_divide_the_reduction(group: int):
    with pytest.raises(ShapeError, match=f"groups of {group} do not divide .* K = 25"):
        quantize_weight(np.ones((2, 25)), 4, granularity="group", group=group)


def test_calls_that_make_no_sense():
    w = np.ones((2, 4))
    with pytest.raises(UsageError, match="granularity 'channel' with group 2"):
        quantize_weight(w, 4, group=2)
    with pytest.raises(UsageError, match="granularity 'group' with group None"):
        quantize_weight(w, 4, granularity="group")
    with pytest.raises(UsageError, match="no granularity 'row'"):
        quantize_weight(w, 4, granularity="row")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="no mode 'median'"):
        quantize_weight(w, 4, mode="median")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="no mode 'mean'"):
        quantize_weight(w, 4, mode="mean", symmetric=False)
    with pytest.raises(WidthError):
        quantize_weight(w, 9)
    with pytest.raises(Error, match="complex"):
        quantize_weight(w * 1j, 4)
    with pytest.raises(Error, match="does not convert"):
        quantize_weight([["a"]], 4)


@pytest.mark.parametrize("shape", [(), (0, 4), (4, 0)])
def test_empty_weights_are_refused(shape: tuple[int, ...]):
    with pytest.raises(ShapeError):
        quantize_weight(np.zeros(shape), 4)


@pytest.mark.parametrize("width", [1, 1.58, 2, 3, 4, 8])
@pytest.mark.parametrize("size", [1e-7, 1.0, 1e5, 1e30])
def test_scales_of_f16(width: float, size: float) -> None:
    w = (np.random.default_rng(0).standard_normal((6, 32)) * size).astype(np.float32)
    quantized = quantize_weight(w, width, granularity="group", group=8, scales="f16")
    halves = quantized.scale.astype(np.float16)
    assert np.isfinite(halves).all()
    assert (halves > 0).all()
    np.testing.assert_array_equal(halves.astype(np.float32), quantized.scale)
    expected = with_scale(w.reshape(24, 8), Width.of(width), quantized.scale.reshape(-1))
    np.testing.assert_array_equal(quantized.values.reshape(24, 8), expected)


def test_scales_of_f16_lose_little() -> None:
    w = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float32)
    errors = [
        np.square(quantize_weight(w, 4, granularity="group", group=32, scales=s).dequantize() - w)
        for s in ("f32", "f16")
    ]
    assert errors[1].sum() < 1.01 * errors[0].sum()


def test_offsets_of_f16() -> None:
    w = np.random.default_rng(2).standard_normal((4, 64)).astype(np.float32)
    quantized = quantize_weight(w, 4, mode="offset", granularity="group", group=32, scales="f16")
    assert quantized.offset is not None
    for numbers in (quantized.scale, quantized.offset):
        np.testing.assert_array_equal(numbers.astype(np.float16).astype(np.float32), numbers)
    assert np.abs(quantized.dequantize() - w).max() < 0.55 * quantized.scale.max()


def test_zero_points_have_no_scales_of_f16() -> None:
    with pytest.raises(UsageError, match="scales of float32"):
        quantize_weight(np.ones((2, 4)), 4, symmetric=False, scales="f16")
