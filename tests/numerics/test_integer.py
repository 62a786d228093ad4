"""The integer core against loops of Python integers and against torch in float64."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import ShapeError, WidthError
from fewbit.numerics import (
    WIDTHS,
    Width,
    check_accumulator,
    conv1d,
    conv2d,
    conv2d_grouped,
    linear,
    linear_grouped,
    window,
)

widths = st.sampled_from(WIDTHS)
seeds = st.integers(0, 2**32 - 1)
Ints = npt.NDArray[np.int8]


def values_of(width: Width, shape: tuple[int, ...], seed: int) -> Ints:
    values = np.random.default_rng(seed).integers(width.qmin, width.qmax + 1, shape, np.int8)
    if width.is_binary:
        values[values == 0] = -1
    return values


def dot(x: list[int], w: list[int], zx: int = 0, zw: int = 0) -> int:
    return sum((a - zx) * (b - zw) for a, b in zip(x, w, strict=True))


@settings(deadline=None)
@given(widths, widths, st.integers(1, 70), seeds)
def test_linear_is_exact(x_width: Width, w_width: Width, k: int, seed: int):
    x, w = values_of(x_width, (2, 3, k), seed), values_of(w_width, (4, k), seed + 1)
    result = linear(x, w)
    assert result.dtype == np.int32
    rows = x.reshape(6, k).tolist()
    assert result.reshape(6, 4).tolist() == [[dot(a, b) for b in w.tolist()] for a in rows]


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(1, 7), seeds)
def test_groups_are_partial_sums_in_order(groups: int, size: int, seed: int):
    eight = Width.of(8)
    x = values_of(eight, (3, groups * size), seed)
    w = values_of(eight, (2, groups * size), seed + 1)
    partial = linear_grouped(x, w, size)
    assert partial.shape == (3, 2, groups)
    for g in range(groups):
        part = slice(g * size, (g + 1) * size)
        assert np.array_equal(partial[..., g], linear(x[:, part], w[:, part]))
    assert np.array_equal(partial.sum(axis=-1), linear(x, w))


def test_linear_with_zero_points_per_row_channel_and_group():
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-128, 128, shape, np.int8) for shape in ((3, 12), (4, 12)))
    zx = rng.integers(-128, 128, 3).astype(np.int32)
    zw = rng.integers(-128, 128, (4, 3)).astype(np.int32)
    result = linear(x, w, zx, zw[:, 0])
    expected = [
        [dot(a, b, int(zx[i]), int(zw[j, 0])) for j, b in enumerate(w.tolist())]
        for i, a in enumerate(x.tolist())
    ]
    assert result.tolist() == expected
    partial = linear_grouped(x, w, 4, zx, zw)
    for i, j, g in itertools.product(range(3), range(4), range(3)):
        part = slice(4 * g, 4 * g + 4)
        assert partial[i, j, g] == dot(
            x[i, part].tolist(), w[j, part].tolist(), int(zx[i]), int(zw[j, g])
        )


@pytest.mark.parametrize("k", [1023, 1024, 1025, 1026, 131_071])
def test_sums_are_exact_on_both_sides_of_float32s_limit(k: int):
    x = np.full((1, k), -128, np.int8)
    w = np.full((2, k), -128, np.int8)
    w[1, 0] = -127
    assert linear(x, w).tolist() == [[k * 2**14, k * 2**14 - 128]]


@pytest.mark.parametrize("k", [1041, 1200, 2000, 3000])
def test_odd_sums_beyond_float32s_integers_are_exact(k: int):
    rng = np.random.default_rng(k)
    x, w = (rng.integers(120, 128, (3, k), np.int8) for _ in range(2))
    assert linear(x, w).tolist() == [[dot(a, b) for b in w.tolist()] for a in x.tolist()]


def test_a_sum_beyond_int32_is_refused_and_one_that_fits_is_not():
    k = 1 << 17
    low = np.full((1, k), -128, np.int8)
    with pytest.raises(ShapeError, match="does not fit int32"):
        linear(low, low)
    high = np.full((1, k), 127, np.int8)
    assert linear(low, high).tolist() == [[-128 * 127 * k]]
    with pytest.raises(ShapeError, match="does not fit int32"):
        linear(np.full((1, 2), 2**40), np.full((1, 2), 2**40))


Geometry = tuple[tuple[int, int], tuple[tuple[int, int], tuple[int, int]], tuple[int, int], int]
geometries = st.tuples(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(*[st.tuples(st.integers(0, 3), st.integers(0, 3))] * 2),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 3),
)


def conv_at(x: Ints, w: Ints, geometry: Geometry, place: tuple[int, ...], zx: int, zw: int) -> int:
    """One output of a convolution, as its definition reads; padding contributes nothing."""
    (sh, sw), ((top, _), (left, _)), (dh, dw), groups = geometry
    n, o, row, column = place
    first = o // (w.shape[0] // groups) * w.shape[1]
    total = 0
    for c, i, j in itertools.product(*map(range, w.shape[1:])):
        y, z = row * sh + i * dh - top, column * sw + j * dw - left
        if 0 <= y < x.shape[2] and 0 <= z < x.shape[3]:
            total += (int(x[n, first + c, y, z]) - zx) * (int(w[o, c, i, j]) - zw)
    return total


@settings(deadline=None, max_examples=60)
@given(geometries, st.integers(1, 3), st.integers(1, 3), st.booleans(), seeds)
def test_conv2d_is_exact(geometry: Geometry, kh: int, kw: int, affine: bool, seed: int):
    stride, padding, dilation, groups = geometry
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, (2, 2 * groups, 8, 7), np.int8)
    w = rng.integers(-128, 128, (3 * groups, 2, kh, kw), np.int8)
    zx, zw = (int(z) for z in rng.integers(-128, 128, 2)) if affine else (0, 0)
    zeros = (zx, zw) if affine else (None, None)
    result = conv2d(x, w, stride, padding, dilation, groups, *zeros)
    assert result.dtype == np.int32
    for place in itertools.product(range(2), (0, w.shape[0] - 1), *map(range, result.shape[2:])):
        assert result[place] == conv_at(x, w, geometry, place, zx, zw)


@settings(deadline=None, max_examples=40)
@given(geometries, seeds)
def test_conv2d_agrees_with_torch(geometry: Geometry, seed: int):
    stride, ((top, bottom), (left, right)), dilation, groups = geometry
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 8, (3, 4 * groups, 13, 11), np.int8)
    w = rng.integers(-8, 8, (5 * groups, 4, 3, 2), np.int8)
    padded = torch.nn.functional.pad(torch.tensor(x).double(), (left, right, top, bottom))
    expected = torch.nn.functional.conv2d(
        padded, torch.tensor(w).double(), stride=stride, dilation=dilation, groups=groups
    )
    result = conv2d(x, w, stride, geometry[1], dilation, groups)
    assert np.array_equal(result, expected.numpy())
    partial = conv2d_grouped(x, w, 6, stride, geometry[1], dilation, groups)
    assert partial.shape == (*result.shape, 4)
    assert np.array_equal(partial.sum(axis=-1), result)


def test_grouped_partial_sums_of_a_convolution():
    rng = np.random.default_rng(3)
    x = rng.integers(-8, 8, (2, 3, 5, 5), np.int8)
    w = rng.integers(-8, 8, (4, 3, 3, 3), np.int8)
    partial = conv2d_grouped(x, w, 9)
    for g in range(3):
        assert np.array_equal(partial[..., g], conv2d(x[:, g : g + 1], w[:, g : g + 1]))


def test_blocks_of_samples_join_without_a_seam(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(4)
    x = rng.integers(-8, 8, (7, 2, 6, 6), np.int8)
    w = rng.integers(-8, 8, (3, 2, 3, 3), np.int8)
    expected = conv2d(x, w)
    monkeypatch.setattr(window, "_BLOCK", 700)
    assert np.array_equal(conv2d(x, w), expected)
    assert conv2d(x[:0], w).shape == (0, 3, 4, 4)


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 3),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 3),
    st.integers(1, 3),
    seeds,
)
def test_conv1d_agrees_with_torch(
    stride: int, padding: tuple[int, int], dilation: int, groups: int, seed: int
):
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, (2, 2 * groups, 15), np.int8)
    w = rng.integers(-128, 128, (3 * groups, 2, 4), np.int8)
    zx = np.array([5, -3], np.int32)
    centered = torch.tensor(x.astype(np.float64) - zx[:, None, None])
    expected = torch.nn.functional.conv1d(
        torch.nn.functional.pad(centered, padding),
        torch.tensor(w).double(),
        stride=stride,
        dilation=dilation,
        groups=groups,
    )
    found = conv1d(x, w, stride, padding, dilation, groups, zx)
    assert np.array_equal(found, expected.numpy())


def test_layout_does_not_matter():
    rng = np.random.default_rng(5)
    x = rng.integers(-8, 8, (2, 3, 6, 6), np.int8)
    w = rng.integers(-8, 8, (4, 3, 3, 3), np.int8)
    channels_last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert np.array_equal(conv2d(channels_last, np.asfortranarray(w)), conv2d(x, w))
    flat, weight = x.reshape(2, -1), rng.integers(-8, 8, (5, 108), np.int8)
    assert np.array_equal(
        linear(flat[:, ::-1], weight[:, ::-1]), linear(np.asfortranarray(flat), weight)
    )


def test_shapes_that_do_not_go_together():
    x, w = np.ones((2, 8), np.int8), np.ones((3, 8), np.int8)
    with pytest.raises(ShapeError, match="do not go together"):
        linear(x[:, :7], w)
    with pytest.raises(ShapeError, match="groups of 3 do not divide"):
        linear_grouped(x, w, 3)
    with pytest.raises(ShapeError, match="zero points of shape"):
        linear(x, w, np.zeros(3, np.int32))
    image, kernel = np.ones((1, 4, 5, 5), np.int8), np.ones((6, 2, 3, 3), np.int8)
    with pytest.raises(ShapeError, match="input channels 4"):
        conv2d(image, kernel)
    with pytest.raises(ShapeError, match="groups"):
        conv2d(image, kernel[:5], groups=2)
    with pytest.raises(ShapeError, match="does not fit an input"):
        conv2d(image, kernel, dilation=(3, 1), groups=2)
    with pytest.raises(ShapeError, match="at least 1"):
        conv2d(image, kernel, stride=(0, 1), groups=2)
    with pytest.raises(ShapeError, match="negative"):
        conv2d(image, kernel, padding=((0, -1), (0, 0)), groups=2)
    with pytest.raises(ShapeError, match="takes"):
        conv2d(image[0], kernel, groups=2)
    with pytest.raises(ShapeError, match="takes"):
        conv1d(image, kernel)
    with pytest.raises(WidthError, match="must hold integers"):
        linear(x.astype(np.float32), w)


@given(widths, widths)
def test_accumulator_bound_is_sharp(x_width: Width, w_width: Width):
    most = (2**31 - 1) // (x_width.magnitude * w_width.magnitude)
    check_accumulator(most, x_width, w_width)
    with pytest.raises(ShapeError, match="overflow int32") as caught:
        check_accumulator(most + 1, x_width, w_width)
    assert caught.value.hint is not None
    assert str(most) in caught.value.hint


def test_accumulator_bound_of_eight_bits():
    check_accumulator(2**17 - 1, 8, 8)
    with pytest.raises(ShapeError):
        check_accumulator(2**17, 8, 8)
    with pytest.raises(ShapeError, match="empty"):
        check_accumulator(0, 8, 8)


def test_zero_points_narrow_the_accumulator_bound():
    for asymmetric, product in (("x", 255 * 8), ("w", 128 * 15), (True, 255 * 15)):
        most = (2**31 - 1) // product
        check_accumulator(most, 8, 4, asymmetric)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ShapeError):
            check_accumulator(most + 1, 8, 4, asymmetric)  # pyright: ignore[reportArgumentType]
