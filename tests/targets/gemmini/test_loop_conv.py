"""Flags of LOOP_CONV_WS that streams of layers do not use: transposes, turned and dilated images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fewbit.numerics import conv2d as exact_conv2d
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import Command, Pointer
from tests.targets.gemmini.dram import Array, requantized, run_stream, some

BATCH, SIDE, CHANNELS, OUTPUTS, KERNEL = 3, 7, 5, 9, 3
OUT = SIDE - KERNEL + 1
SCALE = 0.004


def stream(flags: dict[str, int], **shape: int) -> list[Command]:
    g: dict[str, int] = {
        "out": OUT,
        "stride": 1,
        "pad": 0,
        "kernel": KERNEL,
        "batches": BATCH,
    } | shape
    turned, flipped = flags.get("trans_input_3120", 0), flags.get("trans_weight_0132", 0)
    stride = g["stride"] >> flags.get("downsample", 0)
    x, weight, y = (Pointer(name) for name in ("x", "weight", "y"))
    return [
        c.ConfigExecute(
            a_stride=stride, a_transpose=turned, b_transpose=flipped,
            c_stride=2 if flags.get("input_dilated") else 1,
        ),
        c.ConfigStore(stride=OUTPUTS * (BATCH if flags.get("trans_output_1203") else 1), scale=SCALE),
        c.LoopConv1(BATCH, SIDE, CHANNELS, OUTPUTS, g["out"], g["out"], g["out"], g["stride"]),
        c.LoopConv2(0, 1, 1, g["out"], g["kernel"], OUTPUTS, g["out"], g["out"], g["batches"]),
        c.LoopConv3(g["pad"], CHANNELS, g["kernel"], g["kernel"], SIDE, 0, g["pad"], g["pad"], g["pad"]),
        c.LoopConv4(1, 0, 0, 0, g["out"], g["out"], OUTPUTS, OUTPUTS, CHANNELS),
        c.LoopConv5(weight, y),
        c.LoopConv6(1, x),
        c.LoopConvWs(no_bias=1, no_pool=1, **flags),
    ]  # fmt: skip


def data() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return some(rng, BATCH, SIDE, SIDE, CHANNELS), some(rng, OUTPUTS, CHANNELS, KERNEL, KERNEL)


def wanted(x: Array, w: Array, stride: int = 1) -> Array:
    """N x H x W x O."""
    sums = exact_conv2d(x.transpose(0, 3, 1, 2), w, (stride, stride))
    return requantized(sums.transpose(0, 2, 3, 1), SCALE)


def run(flags: dict[str, int], x: Array, w: Array, shape: tuple[int, ...], **given: Any) -> Array:
    y = np.zeros(shape, np.int8)
    run_stream(stream(flags, **given), y, x=x, weight=w)
    return y


HWIO = (2, 3, 1, 0)


@pytest.mark.parametrize(
    ("flag", "order"), [("trans_weight_1203", (1, 2, 3, 0)), ("trans_weight_0132", (2, 3, 0, 1))]
)
def test_weights_in_another_order(flag: str, order: tuple[int, ...]) -> None:
    x, w = data()
    y = run({flag: 1}, x, np.ascontiguousarray(w.transpose(order)), (BATCH, OUT, OUT, OUTPUTS))
    assert np.array_equal(y, wanted(x, w))


def test_weights_turned_round() -> None:
    x, w = data()
    turned = np.ascontiguousarray(w[:, :, ::-1, ::-1].transpose(HWIO))
    y = run({"wrot180": 1}, x, turned, (BATCH, OUT, OUT, OUTPUTS))
    assert np.array_equal(y, wanted(x, w))


def test_every_second_pixel_is_read() -> None:
    x, w = data()
    w = w[:, :, :1, :1]
    y = run(
        {"downsample": 1}, x, np.ascontiguousarray(w.transpose(HWIO)), (BATCH, 3, 3, OUTPUTS),
        out=3, stride=2, kernel=1,
    )  # fmt: skip
    assert np.array_equal(y, wanted(x, w, 2)[:, :3, :3])


def test_an_image_with_zeros_between_pixels() -> None:
    x, w = data()
    wide = np.zeros((BATCH, 2 * SIDE - 1, 2 * SIDE - 1, CHANNELS), np.int8)
    wide[:, ::2, ::2] = x
    out = 2 * SIDE - 1 - KERNEL + 1
    y = run(
        {"input_dilated": 1}, x, np.ascontiguousarray(w.transpose(HWIO)), (BATCH, out, out, OUTPUTS),
        out=out,
    )  # fmt: skip
    assert np.array_equal(y, wanted(wide, w))


def test_batches_innermost() -> None:
    x, w = data()
    inner = np.ascontiguousarray(x.transpose(3, 1, 2, 0))
    y = run(
        {"trans_input_3120": 1, "trans_output_1203": 1}, inner,
        np.ascontiguousarray(w.transpose(HWIO)), (OUT, OUT, BATCH, OUTPUTS),
    )  # fmt: skip
    assert np.array_equal(y, wanted(x, w).transpose(1, 2, 0, 3))
