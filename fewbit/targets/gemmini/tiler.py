"""Tiles of matmuls and convolutions that fit the two memories.

A tile may use half of each memory, so that the next one loads while it computes. Of all tiles that
fit, the one that reads the least from DRAM is taken; of those, the largest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from fewbit.errors import UnsupportedError
from fewbit.simulators.gemmini.hardware import Hardware


def parts(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield where each part of a dimension begins, and its size."""
    for start in range(0, size, step):
        yield start, min(step, size - start)


@dataclass(frozen=True)
class MatmulTile:
    """A tile of a matmul, in blocks of the array's size."""

    i: int
    j: int
    k: int

    def scratchpad_rows(self, hardware: Hardware) -> int:
        return (self.i + self.j) * self.k * hardware.dim

    def accumulator_rows(self, hardware: Hardware) -> int:
        return self.i * self.j * hardware.dim


def tile_matmul(m: int, n: int, k: int, hardware: Hardware) -> MatmulTile:
    """Return the tile for an m x k by k x n matmul."""
    rows, cols, depth = map(hardware.blocks, (m, n, k))
    sums = hardware.half_accumulator // hardware.dim
    factors = hardware.half_scratchpad // hardware.dim
    best, least = None, (inf, 0.0)
    for i in range(1, min(rows, sums, factors - 1) + 1):
        for j in range(1, min(cols, sums // i, factors - i) + 1):
            inner = min(depth, factors // (i + j))
            # A tile of A is read again for each column of tiles, and B for each row.
            read = rows * depth * -(-cols // j) + depth * cols * -(-rows // i)
            if (read, -i * j * inner) < least:
                best, least = MatmulTile(i, j, inner), (read, -i * j * inner)
    if best is None:
        raise UnsupportedError(f"no tile fits memories of {factors} and {sums} blocks")
    return best


@dataclass(frozen=True)
class ConvShape:
    """A convolution of one group, as its tiles see it."""

    batch: int
    height: int
    width: int
    channels: int
    outputs: int
    kernel_height: int
    kernel_width: int
    stride: int = 1
    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0
    dilation: int = 1
    pool: int = 1
    """Size of the windows of max pooling behind it; 1 for none."""
    pool_stride: int = 1

    @property
    def taps(self) -> int:
        return self.kernel_height * self.kernel_width

    @property
    def reach(self) -> tuple[int, int]:
        """Rows and columns that the kernel spans."""
        height, width = self.kernel_height - 1, self.kernel_width - 1
        return self.dilation * height + 1, self.dilation * width + 1

    @property
    def out_height(self) -> int:
        return (self.height + self.top + self.bottom - self.reach[0]) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + self.left + self.right - self.reach[1]) // self.stride + 1

    @property
    def pooled_height(self) -> int:
        return (self.out_height - self.pool) // self.pool_stride + 1

    @property
    def pooled_width(self) -> int:
        return (self.out_width - self.pool) // self.pool_stride + 1

    def unpooled_size(self, pooled: int) -> int:
        """Return outputs under this many windows."""
        return (pooled - 1) * self.pool_stride + self.pool

    @property
    def macs(self) -> int:
        pixels = self.batch * self.out_height * self.out_width
        return pixels * self.outputs * self.channels * self.taps


@dataclass(frozen=True)
class ConvTile:
    """A tile of a convolution: pooled rows and columns, output and input channels."""

    rows: int
    cols: int
    outputs: int
    channels: int

    def scratchpad_rows(self, shape: ConvShape, hardware: Hardware) -> int:
        down, across = shape.reach
        height = shape.unpooled_size(self.rows) * shape.stride + down - 1
        width = shape.unpooled_size(self.cols) * shape.stride + across - 1
        image = hardware.blocks(self.channels) * height * width
        return image + hardware.blocks(self.outputs) * shape.taps * self.channels

    def accumulator_rows(self, shape: ConvShape, hardware: Hardware) -> int:
        pixels = shape.unpooled_size(self.rows) * shape.unpooled_size(self.cols)
        return hardware.blocks(self.outputs) * pixels

    def fits(self, shape: ConvShape, hardware: Hardware) -> bool:
        return (
            self.scratchpad_rows(shape, hardware) <= hardware.half_scratchpad
            and self.accumulator_rows(shape, hardware) <= hardware.half_accumulator
        )

    def reads(self, shape: ConvShape) -> int:
        """Return bytes that the whole convolution reads in such tiles."""
        down, across = -(-shape.pooled_height // self.rows), -(-shape.pooled_width // self.cols)
        height = down * (shape.reach[0] - 1) + shape.out_height * shape.stride
        width = across * (shape.reach[1] - 1) + shape.out_width * shape.stride
        image = height * width * shape.channels * -(-shape.outputs // self.outputs)
        weights = shape.taps * shape.channels * shape.outputs
        return shape.batch * (image + weights * down * across)


def tile_conv(shape: ConvShape, hardware: Hardware) -> ConvTile:
    """Return the tile for a convolution, one sample at a time."""
    fitting = list(_conv_tiles(shape, hardware))
    if not fitting:
        raise UnsupportedError(
            f"no tile of a convolution by {shape.kernel_height} x {shape.kernel_width} fits"
        )
    return min(fitting, key=lambda tile: (tile.reads(shape), -tile.rows * tile.cols))


def _conv_tiles(shape: ConvShape, hardware: Hardware) -> Iterator[ConvTile]:
    for channels in _steps(shape.channels, hardware.dim):
        for outputs in _steps(shape.outputs, hardware.dim):
            for cols in _steps(shape.pooled_width, hardware.dim):
                # The most rows that fit; fewer always do, if any.
                place = bisect_left(
                    range(1, shape.pooled_height + 1),
                    True,
                    key=lambda rows, others=(cols, outputs, channels): (
                        not ConvTile(rows, *others).fits(shape, hardware)
                    ),
                )
                if place:
                    yield ConvTile(place, cols, outputs, channels)


def _steps(size: int, dim: int) -> list[int]:
    """Return tile sizes: the whole, its halves in blocks, one block, and less if none fits."""
    sizes, blocks = [size], -(-size // dim)
    while blocks > 1:
        blocks = -(-blocks // 2)
        sizes.append(blocks * dim)
    smaller = min(size, dim)
    while smaller > 1:
        smaller //= 2
        sizes.append(smaller)
    return sizes
