"""Convolutions on the model equal those of the numerics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fewbit.errors import UnsupportedError
from fewbit.numerics import conv2d as exact_conv2d
from fewbit.simulators.gemmini.hardware import DIMS, Hardware
from fewbit.targets.gemmini.streams.conv2d import Conv2d, conv2d
from fewbit.targets.gemmini.streams.output import I32, Output
from fewbit.targets.gemmini.tiler import ConvShape
from tests.targets.gemmini.dram import Array, requantized, run_stream, some


def expected(conv: Conv2d, x: Array, w: Array, bias: Array) -> Array:
    """Channels-last, of weights O x C x kh x kw."""
    s = conv.shape
    pads = ((s.top, s.bottom), (s.left, s.right))
    nchw = x.transpose(0, 3, 1, 2)
    strides, dilations = (s.stride, s.stride), (s.dilation, s.dilation)
    sums = exact_conv2d(nchw, w, strides, pads, dilations, conv.groups).transpose(0, 2, 3, 1)
    return sums + bias * conv.bias


def pooled(image: Array, size: int, stride: int) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), (1, 2))
    return windows[:, ::stride, ::stride].max(axis=(4, 5))


def weights(conv: Conv2d, w: Array) -> Array:
    """Arrange them as the stream reads them: by group, kh x kw x C x O."""
    grouped = w.reshape(conv.groups, -1, *w.shape[1:])
    return np.ascontiguousarray(grouped.transpose(0, 3, 4, 2, 1))


def check(conv: Conv2d, style: str, seed: int, hardware: Hardware | None = None) -> None:
    rng, s = np.random.default_rng(seed), conv.shape
    x = some(rng, s.batch, s.height, s.width, conv.channels)
    w = some(rng, conv.outputs, s.channels, s.kernel_height, s.kernel_width)
    bias = rng.integers(-1000, 1000, conv.outputs, dtype=np.int32)
    sums = expected(conv, x, w, bias)
    wanted = sums
    if conv.output.scale is not None:
        wanted = requantized(sums, conv.output.scale, conv.output.relu)
    if s.pool > 1:
        wanted = pooled(wanted, s.pool, s.pool_stride)
    y = np.zeros(wanted.shape, np.int32 if conv.output.full else np.int8)
    stream = conv2d(conv, hardware, "loop" if style == "loop" else "explicit")
    model = run_stream(stream, y, hardware, x=x, weight=weights(conv, w), bias=bias)
    assert np.array_equal(y, wanted)
    if s.pool == 1:
        assert model.events.macs == conv.macs


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[Conv2d, str]:
    def small(low: int, high: int) -> int:
        return draw(st.integers(low, high))

    kh, kw, dilation = small(1, 4), small(1, 4), small(1, 2)
    height, width = small(1, 3) + dilation * kh, small(1, 18) + dilation * kw
    pads = [small(0, min(2, k - 1)) for k in (kh, kw, kh, kw)]
    shape = ConvShape(
        small(1, 2), height, width, small(1, 20), small(1, 20), kh, kw, small(1, 3),
        *pads, dilation=dilation,
    )  # fmt: skip
    style = draw(st.sampled_from(["loop", "explicit", "full"]))
    pools = [1, *(p for p in (2, 3) if p <= min(shape.out_height, shape.out_width))]
    if style != "full":
        pool = draw(st.sampled_from(pools))
        shape = ConvShape(**(vars(shape) | {"pool": pool, "pool_stride": small(1, pool)}))
    output = I32 if style == "full" else Output(0.002, draw(st.booleans()))
    return Conv2d(shape, small(1, 2), draw(st.booleans()), output), style


@settings(max_examples=50, deadline=None)
@given(convolutions(), st.integers(0, 99), st.sampled_from(DIMS))
def test_convolutions_are_exact(given: tuple[Conv2d, str], seed: int, dim: int) -> None:
    check(*given, seed, Hardware(dim))


@pytest.mark.parametrize("style", ["loop", "full"])
def test_tiles_along_every_dimension(style: str) -> None:
    output = I32 if style == "full" else Output(0.001)
    check(Conv2d(ConvShape(1, 40, 40, 70, 40, 3, 3, 1, 1, 1, 1, 1), output=output), style, 3)
    check(
        Conv2d(ConvShape(1, 5, 5, 600, 33, 3, 3, 2, 1, 1, 1, 1), bias=True, output=output), style, 4
    )


def test_sums_leave_no_loop() -> None:
    shape = ConvShape(1, 8, 8, 4, 4, 3, 3)
    with pytest.raises(UnsupportedError, match="give bytes"):
        conv2d(Conv2d(shape), style="loop")
