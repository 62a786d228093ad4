"""Convolutions of images with channels-last, weights of kh x kw x C x O.

Where bytes leave, LOOP_CONV_WS does a tile, max pooling included. It has no i32 output, so where
sums leave, the commands that it would expand to are sent one by one, and the last of them read the
accumulator in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fewbit.errors import UnsupportedError
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import Command
from fewbit.simulators.gemmini.commands import Dataflow
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.loop_conv import ConvLoop, conv_commands
from fewbit.targets.gemmini.streams.output import BIAS, I32, WEIGHT, Output, X, Y, only_if
from fewbit.targets.gemmini.tiler import ConvShape, ConvTile, parts, tile_conv

Style = Literal["loop", "explicit"]

ZEROS = 1
"""In the place of a bias's address: the accumulator begins with zeros."""


@dataclass(frozen=True)
class Conv2d:
    """y = pooled(x * weight + bias), of one group or several."""

    shape: ConvShape
    """The shape of one group."""
    groups: int = 1
    bias: bool = False
    output: Output = I32

    @property
    def channels(self) -> int:
        return self.shape.channels * self.groups

    @property
    def outputs(self) -> int:
        return self.shape.outputs * self.groups

    @property
    def macs(self) -> int:
        return self.shape.macs * self.groups


def conv2d(
    conv: Conv2d, hardware: Hardware | None = None, style: Style | None = None
) -> list[Command]:
    """Return the commands of a convolution."""
    hardware, shape = hardware or Hardware(), conv.shape
    if conv.output.full and (style == "loop" or shape.pool > 1):
        raise UnsupportedError("LOOP_CONV_WS and pooling give bytes, not sums")
    style = style or ("explicit" if conv.output.full else "loop")
    store = conv.output.config(conv.outputs)
    commands: list[Command] = [
        c.ConfigExecute(dataflow=Dataflow.WEIGHT_STATIONARY, a_stride=shape.stride),
        store,
    ]
    loops = list(_loops(conv, tile_conv(shape, hardware), hardware))
    half, finished = hardware.half_accumulator, 0
    for loop in loops:
        if style == "loop":
            commands += loop.commands()
            continue
        # The halves of the accumulator take turns, as they do in LOOP_CONV_WS.
        sums = half * (finished % 2)
        commands += conv_commands(loop, sums, sums, store, full=conv.output.full)
        finished += bool(loop.output)
    return commands


def _loops(conv: Conv2d, tile: ConvTile, hardware: Hardware) -> Iterator[ConvLoop]:
    shape = conv.shape
    for group in range(conv.groups):
        for sample in range(shape.batch):
            for row, rows in parts(shape.pooled_height, tile.rows):
                for col, cols in parts(shape.pooled_width, tile.cols):
                    for out, outputs in parts(shape.outputs, tile.outputs):
                        for channel, channels in parts(shape.channels, tile.channels):
                            part = ConvTile(rows, cols, outputs, channels)
                            at = _Start(group, sample, row, col, out, channel)
                            yield _loop(conv, part, at, hardware)


@dataclass(frozen=True)
class _Start:
    """Where a tile begins."""

    group: int
    sample: int
    row: int
    col: int
    out: int
    channel: int


def _loop(conv: Conv2d, tile: ConvTile, at: _Start, hardware: Hardware) -> ConvLoop:
    shape = conv.shape
    rows, cols = shape.unpooled_size(tile.rows), shape.unpooled_size(tile.cols)
    upad, dpad, first_row = _padding(
        at.row * shape.pool_stride, rows, shape.top, shape.height, shape, 0
    )
    lpad, rpad, first_col = _padding(
        at.col * shape.pool_stride, cols, shape.left, shape.width, shape, 1
    )
    first, last = at.channel == 0, at.channel + tile.channels == shape.channels
    channel = at.group * shape.channels + at.channel
    out = at.group * shape.outputs + at.out
    pixel = (at.sample * shape.height + first_row) * shape.width + first_col
    pooled = (at.sample * shape.pooled_height + at.row) * shape.pooled_width + at.col
    # The weights of a group lie together: kh x kw x C x O of it.
    weight = (
        at.group * shape.taps * shape.channels * shape.outputs + at.channel * shape.outputs + at.out
    )
    at_once = 1
    if shape.dilation == 1 and tile.channels <= hardware.dim:
        at_once = min(shape.kernel_width, hardware.dim // tile.channels)
    return ConvLoop(
        c.LoopConvWs(
            no_bias=not conv.bias,
            max_pixels_per_row=at_once,
            no_pool=shape.pool == 1,
            activation=conv.output.activation,
        ),
        c.LoopConv1(
            shape.batch, shape.height, shape.channels, shape.outputs,
            shape.out_height, shape.pooled_height, shape.out_width, shape.stride, shape.top,
        ),
        c.LoopConv2(
            0, shape.pool_stride, shape.pool, shape.pooled_width, shape.kernel_width,
            tile.outputs, tile.cols, tile.rows, 1,
        ),
        c.LoopConv3(
            lpad, tile.channels, shape.kernel_width, shape.kernel_height,
            shape.width, 0, dpad, upad, rpad,
        ),
        c.LoopConv4(
            shape.dilation, 0, 0, 0, rows, cols, conv.outputs, shape.outputs, conv.channels,
        ),
        hardware,
        weights=WEIGHT + weight,
        output=only_if(last, Y + (pooled * conv.outputs + out) * conv.output.size),
        bias=only_if(first, BIAS + out * 4 if conv.bias else ZEROS),
        input=X + pixel * conv.channels + channel,
    )  # fmt: skip


def _padding(
    first: int, count: int, before: int, size: int, shape: ConvShape, axis: int
) -> tuple[int, ...]:
    """Return padding around what a tile's outputs read, and the first pixel that is there."""
    start = first * shape.stride - before
    end = start + count * shape.stride + shape.reach[axis] - 1
    low, high = max(0, -start), max(0, end - size)
    return low, high, start + low
