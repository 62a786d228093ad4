"""Whole layers: the exact order of float operations, torch, and the cases that broke MiCo."""

from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import ShapeError, UsageError, WidthError
from fewbit.numerics import (
    WIDTHS,
    Quantized,
    Width,
    bitconv1d,
    bitconv2d,
    bitlinear,
    conv2d,
    linear,
    quantize_activation,
    quantize_weight,
    requantize,
)

widths = st.sampled_from(WIDTHS)
affine_widths = st.sampled_from([w for w in WIDTHS if w.precision >= 2])
seeds = st.integers(0, 2**32 - 1)
Floats = npt.NDArray[np.float32]


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def f32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def close(found: Floats, expected: torch.Tensor) -> bool:
    """Within 1e-5 of the largest output, against a float64 reference."""
    reference = expected.numpy()
    return bool(np.abs(found - reference).max() <= 1e-5 * np.abs(reference).max())


def scalar_linear(
    x: list[list[int]],
    x_scale: list[float],
    w: list[list[int]],
    w_scale: list[list[float]],
    bias: list[float],
) -> list[list[float]]:
    """acc · s_x · s_w for each group in order, then the bias, in scalar Python."""
    group = len(w[0]) // len(w_scale[0])
    rows: list[list[float]] = []
    for row, sx in zip(x, x_scale, strict=True):
        outputs: list[float] = []
        for channel, scales, b in zip(w, w_scale, bias, strict=True):
            total = 0.0
            for g, sw in enumerate(scales):
                part = range(g * group, (g + 1) * group)
                acc = sum(row[k] * channel[k] for k in part)
                total = f32(total + f32(f32(f32(acc) * sx) * sw))
            outputs.append(f32(total + b))
        rows.append(outputs)
    return rows


@settings(deadline=None)
@given(widths, widths, st.integers(1, 4), st.integers(1, 9), seeds)
def test_linear_in_the_defined_order(w_width: Width, a_width: Width, g: int, size: int, seed: int):
    x, w, bias = normal(seed, 3, g * size), normal(seed + 1, 4, g * size), normal(seed + 2, 4)
    q = quantize_weight(w, w_width, granularity="group", group=size)
    xq = quantize_activation(x, a_width)
    expected = scalar_linear(
        xq.values.tolist(), xq.scale.tolist(), q.values.tolist(), q.scale.tolist(), bias.tolist()
    )
    found = bitlinear(x, q, bias, a_width)
    assert found.dtype == np.float32
    assert found.tolist() == expected
    assert bitlinear(xq, q, bias).tolist() == expected

    channel = quantize_weight(w, w_width)
    expected = scalar_linear(
        xq.values.tolist(),
        xq.scale.tolist(),
        channel.values.tolist(),
        channel.scale[:, None].tolist(),
        [0.0] * 4,
    )
    assert bitlinear(x, channel, None, a_width).tolist() == expected


@settings(deadline=None)
@given(affine_widths, affine_widths, seeds)
def test_linear_with_zero_points(w_width: Width, a_width: Width, seed: int):
    x, w, bias = normal(seed, 3, 12) + 1, normal(seed + 1, 4, 12) - 1, normal(seed + 2, 4)
    q = quantize_weight(w, w_width, granularity="group", group=4, symmetric=False)
    xq = quantize_activation(x, a_width, symmetric=False)
    assert q.zero_point is not None
    assert xq.zero_point is not None
    expected = scalar_linear(
        (xq.values - xq.zero_point[:, None]).tolist(),
        xq.scale.tolist(),
        (q.values - np.repeat(q.zero_point, 4, axis=1)).tolist(),
        q.scale.tolist(),
        bias.tolist(),
    )
    assert bitlinear(xq, q, bias).tolist() == expected


@pytest.mark.parametrize("a_width", WIDTHS, ids=str)
@pytest.mark.parametrize("w_width", WIDTHS, ids=str)
@pytest.mark.parametrize("k", [25, 255])
def test_every_pair_of_widths_matches_the_float_layer(w_width: Width, a_width: Width, k: int):
    """W2A2, W8A6, W6 and W3 among them, at K that fills no byte: 25 and 255."""
    x, w, bias = normal(1, 6, k), normal(2, 31, k), normal(3, 31)
    q, xq = quantize_weight(w, w_width), quantize_activation(x, a_width)
    expected = torch.nn.functional.linear(
        torch.tensor(xq.dequantize()).double(),
        torch.tensor(q.dequantize()).double(),
        torch.tensor(bias).double(),
    )
    assert close(bitlinear(x, q, bias, a_width), expected)


@pytest.mark.parametrize("width", [4, 1])
def test_odd_sizes_layer_by_layer(width: int):
    sizes = (255, 61, 53, 31)
    x = normal(0, 5, sizes[0])
    for i, (k, n) in enumerate(pairwise(sizes)):
        q = quantize_weight(normal(i + 1, n, k), width)
        xq = quantize_activation(x, width)
        y = bitlinear(x, q, None, width)
        expected = torch.tensor(xq.dequantize()).double() @ torch.tensor(q.dequantize()).double().T
        assert close(y, expected)
        x = np.maximum(y, 0)


def test_several_tokens_at_once_are_several_tokens():
    x, q = normal(0, 2, 3, 53), quantize_weight(normal(1, 7, 53), 4)
    x[1, 2] *= 100
    together = bitlinear(x, q, None, 8)
    assert together.shape == (2, 3, 7)
    for i in range(2):
        for j in range(3):
            assert np.array_equal(together[i, j], bitlinear(x[i, j], q, None, 8))


def test_all_zero_input_gives_the_bias():
    bias = normal(0, 4)
    for width in WIDTHS[1:]:
        q = quantize_weight(normal(1, 4, 9), width)
        assert np.array_equal(bitlinear(np.zeros((2, 9)), q, bias, width), np.stack([bias] * 2))


def test_one_operand_in_float():
    x, w = normal(0, 3, 40), normal(1, 5, 40)
    q, xq = quantize_weight(w, 3, granularity="group", group=10), quantize_activation(x, 6)
    exact_x, exact_w = torch.tensor(x).double(), torch.tensor(w).double()
    real_x, real_w = torch.tensor(xq.dequantize()).double(), torch.tensor(q.dequantize()).double()
    assert close(bitlinear(x, q), exact_x @ real_w.T)
    assert close(bitlinear(x, w, None, 6), real_x @ exact_w.T)
    assert close(bitlinear(xq, w), real_x @ exact_w.T)
    assert close(bitlinear(x, w), exact_x @ exact_w.T)


def test_static_activations():
    x, q = normal(0, 4, 20), quantize_weight(normal(1, 3, 20), 4)
    for zero_point in (None, 5):
        xq = quantize_activation(x, 8, scale=0.03, zero_point=zero_point)
        assert np.array_equal(bitlinear(x, q, None, 8, 0.03, zero_point), bitlinear(xq, q))


Geometry = tuple[tuple[int, int], tuple[tuple[int, int], tuple[int, int]], tuple[int, int], int]
geometries = st.tuples(
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.integers(1, 2),
)


def torch_conv(x: Floats, w: Floats, bias: Floats, geometry: Geometry) -> torch.Tensor:
    stride, ((top, bottom), (left, right)), dilation, groups = geometry
    return torch.nn.functional.conv2d(
        torch.nn.functional.pad(torch.tensor(x).double(), (left, right, top, bottom)),
        torch.tensor(w).double(),
        torch.tensor(bias).double(),
        stride=stride,
        dilation=dilation,
        groups=groups,
    )


@settings(deadline=None, max_examples=60)
@given(widths, widths, geometries, st.sampled_from([None, 2, 4, 24]), seeds)
def test_convolution_matches_the_float_layer(
    w_width: Width, a_width: Width, geometry: Geometry, group: int | None, seed: int
):
    stride, padding, dilation, groups = geometry
    x, bias = normal(seed, 2, 4 * groups, 8, 9), normal(seed + 2, 3 * groups)
    x[1] *= 50
    q = quantize_weight(
        normal(seed + 1, 3 * groups, 4, 3, 2),
        w_width,
        granularity="channel" if group is None else "group",
        group=group,
    )
    xq = quantize_activation(x, a_width, granularity="sample")
    result = bitconv2d(
        x, q, bias, a_width, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
    expected = torch_conv(xq.dequantize(), q.dequantize(), bias, geometry)
    assert result.dtype == np.float32
    for sample in range(2):
        assert close(result[sample], expected[sample])


@pytest.mark.parametrize("granularity", ["tensor", "channel"])
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_convolution_in_the_defined_order(width: Width, granularity: str):
    x, bias = normal(0, 2, 3, 7, 7), normal(2, 4)
    q = quantize_weight(normal(1, 4, 3, 3, 3), width, granularity=granularity)  # pyright: ignore[reportArgumentType]
    xq = quantize_activation(x, 8, granularity="sample")
    acc = conv2d(xq.values, q.values, padding=((1, 0), (2, 1)))
    scaled = acc.astype(np.float32) * xq.scale[:, None, None, None]
    expected = scaled * q.scale.reshape(-1, 1, 1) + bias[:, None, None]
    result = bitconv2d(x, q, bias, 8, padding=((1, 0), (2, 1)))
    assert np.array_equal(result, expected)


def test_group_scales_of_a_convolution_in_the_defined_order():
    x = normal(0, 2, 3, 6, 6)
    q = quantize_weight(normal(1, 4, 3, 3, 3), 4, granularity="group", group=9)
    xq = quantize_activation(x, 8, granularity="sample")
    total = np.zeros((2, 4, 4, 4), np.float32)
    for g in range(3):
        acc = conv2d(xq.values[:, g : g + 1], q.values[:, g : g + 1]).astype(np.float32)
        total += acc * xq.scale[:, None, None, None] * q.scale[:, g].reshape(-1, 1, 1)
    assert np.array_equal(bitconv2d(x, q, None, 8), total)


def test_padding_is_zero_whatever_the_width_and_zero_point():
    """A kernel that sees only padding gives the bias: at 1 bit, and with a zero point."""
    q = quantize_weight(np.ones((1, 1, 1, 1)), 8)
    x, bias = np.full((1, 1, 1, 1), 3.0, np.float32), [0.5]
    around = ((1, 1), (1, 1))
    one_bit = bitconv2d(x, q, bias, 1, padding=around)
    affine = bitconv2d(x, q, bias, 8, 0.1, 100, padding=around)
    for y in (one_bit, affine):
        edge = np.delete(y.reshape(-1), 4)
        assert (edge == 0.5).all()
        assert y[0, 0, 1, 1] > 1


def test_one_operand_of_a_convolution_in_float():
    geometry: Geometry = ((2, 1), ((1, 0), (0, 2)), (1, 2), 2)
    stride, padding, dilation, groups = geometry
    x, w, bias = normal(0, 2, 4, 9, 9), normal(1, 6, 2, 3, 3), normal(2, 6)
    q, xq = quantize_weight(w, 5), quantize_activation(x, 7, granularity="sample")
    cases: list[tuple[Floats | Quantized, Floats | Quantized, int | None, Floats, Floats]] = [
        (x, q, None, x, q.dequantize()),
        (x, w, 7, xq.dequantize(), w),
        (xq, w, None, xq.dequantize(), w),
    ]
    for left, right, bits, real_x, real_w in cases:
        result = bitconv2d(
            left,
            right,
            bias,
            bits,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
        )
        assert close(result, torch_conv(real_x, real_w, bias, geometry))


@settings(deadline=None, max_examples=50)
@given(
    widths,
    widths,
    st.integers(1, 3),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.integers(1, 2),
    st.integers(1, 2),
    seeds,
)
def test_conv1d_matches_the_float_layer(
    w_width: Width,
    a_width: Width,
    stride: int,
    padding: tuple[int, int],
    dilation: int,
    groups: int,
    seed: int,
):
    x, bias = normal(seed, 2, 2 * groups, 15), normal(seed + 2, 3 * groups)
    q = quantize_weight(normal(seed + 1, 3 * groups, 2, 4), w_width, granularity="group", group=4)
    xq = quantize_activation(x, a_width, granularity="sample")
    expected = torch.nn.functional.conv1d(
        torch.nn.functional.pad(torch.tensor(xq.dequantize()).double(), padding),
        torch.tensor(q.dequantize()).double(),
        torch.tensor(bias).double(),
        stride=stride,
        dilation=dilation,
        groups=groups,
    )
    for activation in (x, xq):
        found = bitconv1d(
            activation,
            q,
            bias,
            a_width,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
        )
        assert close(found, expected)


def test_integers_can_flow_from_layer_to_layer():
    """Static scales: acc to the next integers directly, within one step of going through float."""
    x, q = normal(0, 50, 61), quantize_weight(normal(1, 53, 61), 4)
    x_scale, y_scale = np.float32(0.03), np.float32(0.2)
    xq = quantize_activation(x, 8, scale=x_scale)
    direct = requantize(linear(xq.values, q.values), x_scale * q.scale / y_scale, 8)
    through_float = quantize_activation(bitlinear(xq, q), 8, scale=y_scale).values
    assert (np.abs(direct.astype(int) - through_float) <= 1).all()
    assert (direct == through_float).mean() > 0.99


def test_layers_refuse_what_does_not_fit():
    x, q = normal(0, 2, 8), quantize_weight(normal(1, 3, 8), 4)
    with pytest.raises(ShapeError, match="do not go together"):
        bitlinear(x[:, :7], q, None, 8)
    with pytest.raises(ShapeError, match="bias"):
        bitlinear(x, q, np.zeros(4), 8)
    with pytest.raises(WidthError, match="takes 4 bits, its input has 8"):
        bitlinear(quantize_activation(x, 8), q, None, 4)
    grouped = quantize_weight(x, 8, granularity="group", group=4)
    with pytest.raises(ShapeError, match="one scale per row"):
        bitlinear(grouped, q)
    per_column = Quantized(
        np.ones((3, 2, 2, 2), np.int8), np.ones((3, 2, 2), np.float32), None, Width.of(4)
    )
    with pytest.raises(ShapeError, match="weight scales"):
        bitconv2d(np.ones((1, 2, 4, 4)), per_column, None, 8)
    empty = Quantized(np.ones((3, 0), np.int8), np.ones((3, 0), np.float32), None, Width.of(4))
    with pytest.raises(ShapeError, match="empty"):
        bitlinear(np.ones((2, 0)), empty, None, 8, 1.0)
    image, kernel = normal(2, 2, 3, 5, 5), quantize_weight(normal(3, 4, 3, 3, 3), 4)
    with pytest.raises(ShapeError, match="one scale per sample"):
        bitconv2d(quantize_activation(image, 8), kernel)
    with pytest.raises(ShapeError, match="takes"):
        bitconv1d(image, kernel)
    with pytest.raises(ShapeError, match="input channels"):
        bitconv2d(image[:, :2], kernel, None, 8)


def test_layers_refuse_static_scales_that_they_would_not_use():
    x, q = normal(0, 2, 8), quantize_weight(normal(1, 3, 8), 4)
    image, kernel = normal(2, 2, 3, 5, 5), quantize_weight(normal(3, 4, 3, 3, 3), 4)
    with pytest.raises(UsageError, match="without act_width"):
        bitlinear(x, q, act_scale=123.0)
    with pytest.raises(UsageError, match="without act_width"):
        bitconv2d(image, kernel, act_zero_point=1)
    with pytest.raises(UsageError, match="has its own"):
        bitlinear(quantize_activation(x, 8), q, act_width=8, act_scale=1.0)
    with pytest.raises(UsageError, match="act_scale"):
        bitlinear(quantize_activation(x, 8), q, act_scale=1.0)


def test_layers_refuse_a_reduction_that_could_overflow():
    k = 1 << 17
    x, q = np.ones((1, k), np.float32), quantize_weight(np.ones((1, k)), 8)
    with pytest.raises(ShapeError, match="overflow int32"):
        bitlinear(x, q, None, 8)
    assert bitlinear(x, q, None, 7).shape == (1, 1)
    grouped = quantize_weight(np.ones((1, k)), 8, granularity="group", group=k // 2)
    assert bitlinear(x, grouped, None, 8)[0, 0] == pytest.approx(k)
    affine = quantize_weight(np.ones((1, k // 2)), 8, symmetric=False)
    assert bitlinear(x[:, : k // 2], affine, None, 8).shape == (1, 1)
    both = quantize_activation(x[:, : k // 2], 8, symmetric=False)
    with pytest.raises(ShapeError, match="overflow int32"):
        bitlinear(both, affine)
