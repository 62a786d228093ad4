"""Runs a block as the accelerator would: loops over tiles, three buffers, and bricks.

What a transfer loads is all that the loops inside it touch; tiles are computed from buffers alone.
Sums are loaded, added to and stored, so any order of loops gives the same result, which is that of
integers of any width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from fewbit.targets.bitfusion.blocks import Block
from fewbit.targets.bitfusion.bricks import Digits, cut, multiply

Ints = NDArray[np.integer[Any]]
Range = tuple[int, int]
Ranges = dict[str, Range]
"""By dimension: from where to where."""


@dataclass
class Counted:
    """What happened in a run of blocks."""

    macs: int = 0
    bricks: int = 0
    """Products of digits."""
    tiles: int = 0
    loaded: dict[str, int] = field(default_factory=dict[str, int])
    """Bits by stream."""
    stored: int = 0
    """Bits of sums."""


def execute(block: Block, x: Ints, weight: Ints) -> tuple[NDArray[np.int32], Counted]:
    """Return the sums [N, O, OH, OW] of x[N, C, H, W] with weight[O, C/groups, kh, kw]."""
    shape, counted = block.shape, Counted()
    padded = np.pad(x, ((0, 0), (0, 0), *shape.padding))
    sums = np.zeros((shape.batch, shape.outputs * block.groups, *shape.image), np.int64)
    for group in range(block.groups):
        channels = slice(group * shape.inputs, (group + 1) * shape.inputs)
        outputs = slice(group * shape.outputs, (group + 1) * shape.outputs)
        run = _Run(block, padded[:, channels], weight[outputs], sums[:, outputs], counted)
        run.loops(0, run.whole)
    return sums.astype(np.int32), counted


class _Run:
    """One group: memory, and what the buffers hold, with where it is from."""

    def __init__(
        self, block: Block, x: Ints, weight: Ints, sums: NDArray[np.int64], counted: Counted
    ) -> None:
        shape = block.shape
        self.block, self.counted, self.sums = block, counted, sums
        self.x = _unfold(x, block) if block.unfolded else x
        self.weight = weight
        self.whole: Ranges = {
            "batch": (0, shape.batch),
            "columns": (0, shape.image[1]),
            "rows": (0, shape.image[0]),
            "inputs": (0, shape.inputs),
            "outputs": (0, shape.outputs),
        }
        self.act_digits: Digits = np.zeros(0, np.float32)
        self.weight_digits: Digits = np.zeros(0, np.float32)
        self.out = sums
        self.origins: dict[str, Ranges] = {}

    def loops(self, depth: int, ranges: Ranges) -> None:
        """Run what is inside `depth` loops, whose iterations have these ranges."""
        here = [t for t in self.block.transfers if t.inside == depth]
        for transfer in here:
            self._load(transfer.stream, ranges)
            loaded = self.counted.loaded
            loaded[transfer.stream] = loaded.get(transfer.stream, 0) + transfer.bits
        if depth == len(self.block.loops):
            self._compute(ranges)
        else:
            loop = self.block.loops[depth]
            start, stop = ranges[loop.over]
            for turn in range(loop.count):
                begin = start + turn * loop.tile
                part = (begin, min(begin + loop.tile, stop))
                self.loops(depth + 1, {**ranges, loop.over: part})
        for transfer in here:
            if transfer.stream == "out":
                self.sums[self._out_slices(ranges)] = self.out
                self.counted.stored += transfer.bits

    def _load(self, stream: str, ranges: Ranges) -> None:
        self.origins[stream] = ranges
        if stream == "weight":
            weight = self.weight[_slice(ranges["outputs"]), _slice(ranges["inputs"])]
            self.weight_digits = cut(weight, self.block.weight_bits)
        elif stream == "act":
            self.act_digits = cut(self.x[self._act_slices(ranges)], self.block.act_bits)
        else:
            self.out = self.sums[self._out_slices(ranges)].copy()

    def _compute(self, ranges: Ranges) -> None:
        shape = self.block.shape
        origin = self.origins["weight"]
        outputs, inputs = (_slice(ranges[name], origin[name][0]) for name in ("outputs", "inputs"))
        kernels = self.weight_digits[:, outputs, inputs]
        kernels = kernels.reshape(*kernels.shape[:2], -1)
        windows = self._windows(ranges)
        sums = multiply(kernels, windows.reshape(windows.shape[0], kernels.shape[2], -1))
        where = self._out_slices(ranges, self.origins["out"])
        target = self.out[where]
        batch, count, rows, columns = target.shape
        self.out[where] += sums.reshape(count, batch, rows, columns).swapaxes(0, 1)
        counted, macs = self.counted, sums.size * kernels.shape[2]
        counted.macs += macs
        counted.bricks += macs * self.block.bricks[0] * self.block.bricks[1]
        counted.tiles += 1
        assert kernels.shape[2] == (inputs.stop - inputs.start) * shape.kernel[0] * shape.kernel[1]

    def _windows(self, ranges: Ranges) -> Digits:
        """Return a tile's windows: [places, channels, kh, kw, batch, rows, columns] of digits."""
        shape = self.block.shape
        part = self.act_digits[(slice(None), *self._act_slices(ranges, self.origins["act"]))]
        if self.block.unfolded:
            return part.transpose(0, 2, 3, 1, 4, 5)
        windows = sliding_window_view(part, shape.kernel, axis=(3, 4))
        windows = windows[:, :, :, :: shape.stride[0], :: shape.stride[1]]
        return windows.transpose(0, 2, 5, 6, 1, 3, 4)

    def _act_slices(self, ranges: Ranges, origin: Ranges | None = None) -> tuple[slice, ...]:
        """Return where the inputs of these outputs are, in memory or in the buffer."""
        shape = self.block.shape
        first = origin or dict.fromkeys(ranges, (0, 0))
        channels = _slice(ranges["inputs"], first["inputs"][0])
        batch = _slice(ranges["batch"], first["batch"][0])
        if self.block.unfolded:
            image = [_slice(ranges[name], first[name][0]) for name in ("rows", "columns")]
            return batch, channels, slice(None), *image
        image = [
            slice(
                (ranges[name][0] - first[name][0]) * stride,
                (ranges[name][1] - 1 - first[name][0]) * stride + kernel,
            )
            for name, stride, kernel in zip(
                ("rows", "columns"), shape.stride, shape.kernel, strict=True
            )
        ]
        return batch, channels, *image

    def _out_slices(self, ranges: Ranges, origin: Ranges | None = None) -> tuple[slice, ...]:
        first = origin or dict.fromkeys(ranges, (0, 0))
        names = ("batch", "outputs", "rows", "columns")
        return tuple(_slice(ranges[name], first[name][0]) for name in names)


def _slice(range: Range, origin: int = 0) -> slice:
    return slice(range[0] - origin, range[1] - origin)


def _unfold(x: Ints, block: Block) -> Ints:
    """Return windows as the host lays them out: [N, C, kh * kw, OH, OW]."""
    shape = block.shape
    extent = [(k - 1) * d + 1 for k, d in zip(shape.kernel, shape.dilation, strict=True)]
    windows = sliding_window_view(x, extent, axis=(2, 3))
    windows = windows[:, :, :: shape.stride[0], :: shape.stride[1]]
    windows = windows[..., :: shape.dilation[0], :: shape.dilation[1]]
    windows = windows[:, :, : shape.image[0], : shape.image[1]]
    flat = windows.reshape(*windows.shape[:4], -1)
    return flat.transpose(0, 1, 4, 2, 3)
