"""Max pooling of an image of bytes, channels-last, as it leaves the accumulator."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.errors import UnsupportedError
from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATOR, Command
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.targets.gemmini.streams.output import Output, X, Y
from fewbit.targets.gemmini.tiler import parts

MOST = 255
"""Pixels along a side of a tile, and of the result: 8 bits are theirs."""


@dataclass(frozen=True)
class MaxPool:
    """Windows of size x size without padding: what lies outside would count as 0."""

    batch: int
    height: int
    width: int
    channels: int
    size: int
    stride: int

    @property
    def out_height(self) -> int:
        return (self.height - self.size) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width - self.size) // self.stride + 1


def max_pool(pool: MaxPool, hardware: Hardware | None = None) -> list[Command]:
    """Return the commands of y = the maximum of each window of x."""
    hardware = hardware or Hardware()
    if pool.size > 3 or pool.stride > 3:
        raise UnsupportedError("windows of pooling and their steps have up to 3 pixels")
    if pool.width > MOST:
        raise UnsupportedError(f"an image of {pool.width} columns is too wide for pooling")
    within = hardware.accumulator_rows // pool.width
    rows = (min(within, MOST) - pool.size) // pool.stride + 1
    if rows < 1:
        raise UnsupportedError(f"{pool.size} rows of {pool.width} pixels fit no accumulator")
    commands: list[Command] = [c.ConfigLoad(stride=pool.channels, shrunk=1)]
    for sample in range(pool.batch):
        for row, count in parts(pool.out_height, rows):
            commands += _tile(pool, sample, row, count, hardware)
    commands.append(Output(1.0).config(pool.channels))
    return commands


def _tile(pool: MaxPool, sample: int, row: int, count: int, hardware: Hardware) -> list[Command]:
    height = (count - 1) * pool.stride + pool.size
    first = (sample * pool.height + row * pool.stride) * pool.width
    out = (sample * pool.out_height + row) * pool.out_width
    commands: list[Command] = [
        c.ConfigStore(
            pool_stride=pool.stride,
            pool_size=pool.size,
            pool_out_dim=pool.out_width,
            porows=count,
            pocols=pool.out_width,
            orows=height,
            ocols=pool.width,
            stride=pool.channels,
        )
    ]
    for channel, channels in parts(pool.channels, hardware.dim):
        for pixel, pixels in parts(height * pool.width, hardware.dim):
            at = X + (first + pixel) * pool.channels + channel
            commands.append(c.Mvin(at, ACCUMULATOR + pixel, channels, pixels))
        at = Y + out * pool.channels + channel
        commands.append(c.Mvout(at, ACCUMULATOR, channels, 0))
    return commands
