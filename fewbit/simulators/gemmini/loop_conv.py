"""The commands that the hardware expands LOOP_CONV_WS to: a convolution of part of an image.

There is no im2col in memory: a row of the scratchpad is a pixel, a window is an offset into it, and
rows of output pixels are multiplied one after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fewbit.simulators.gemmini import commands as c
from fewbit.simulators.gemmini.command import ACCUMULATE, ACCUMULATOR, FULL, GARBAGE, Command
from fewbit.simulators.gemmini.hardware import Hardware
from fewbit.simulators.gemmini.loop_matmul import Configured, require_config


@dataclass(frozen=True)
class ConvLoop:
    """All that LOOP_CONV_WS was given."""

    op: c.LoopConvWs
    image: c.LoopConv1
    pool: c.LoopConv2
    kernel: c.LoopConv3
    sizes: c.LoopConv4
    hardware: Hardware
    weights: Any
    output: Any
    bias: Any
    input: Any

    @staticmethod
    def of(op: c.LoopConvWs, given: Configured, hardware: Hardware) -> ConvLoop:
        five: c.LoopConv5 = require_config(given, c.LoopConv5)
        six: c.LoopConv6 = require_config(given, c.LoopConv6)
        return ConvLoop(
            op,
            require_config(given, c.LoopConv1),
            require_config(given, c.LoopConv2),
            require_config(given, c.LoopConv3),
            require_config(given, c.LoopConv4),
            hardware,
            *(five.weights, five.output, six.bias, six.input),
        )

    def commands(self) -> list[Command]:
        """Return the commands that the host sends."""
        return [
            self.image,
            self.pool,
            self.kernel,
            self.sizes,
            c.LoopConv5(self.weights, self.output),
            c.LoopConv6(self.bias, self.input),
            self.op,
        ]

    def undilated(self, x: int) -> int:
        return x + self.op.input_dilated >> self.op.input_dilated

    def down(self, x: int) -> int:
        return x >> self.op.downsample

    def up(self, x: int) -> int:
        return x << self.op.downsample

    @property
    def out_pixels(self) -> int:
        """The pixels of a block of channels in the accumulator."""
        return self.pool.batches * self.sizes.orows * self.sizes.ocols

    def _span(self, outputs: int, kernel: int, before: int, after: int) -> tuple[int, int]:
        """Return the pixels along a side with padding, and without."""
        dilated = kernel + (self.sizes.kernel_dilation - 1) * (kernel - 1)
        whole = outputs * self.image.stride + dilated - 1
        inner = whole - before - after
        if not self.op.input_dilated:
            return whole, inner
        inner = (inner + 1) // 2
        return inner + self.undilated(before) + self.undilated(after), inner

    @property
    def in_rows(self) -> tuple[int, int]:
        kernel = self.kernel
        return self._span(self.sizes.orows, kernel.krows, kernel.upad, kernel.dpad)

    @property
    def in_cols(self) -> tuple[int, int]:
        kernel = self.kernel
        return self._span(self.sizes.ocols, kernel.kcols, kernel.lpad, kernel.rpad)

    @property
    def in_pixels(self) -> int:
        """The pixels of one sample in the scratchpad."""
        return self.down(self.in_rows[0]) * self.down(self.in_cols[0])

    @property
    def taps(self) -> int:
        return self.kernel.krows * self.kernel.kcols

    @property
    def weight_rows(self) -> int:
        blocks, channels = self.hardware.blocks, (self.pool.pochs, self.kernel.kchs)
        outer, inner = channels[::-1] if self.op.trans_weight_0132 else channels
        return blocks(outer) * self.taps * inner

    @property
    def a_start(self) -> int:
        return self.hardware.half_scratchpad if self.op.a_spad_id == 2 else 0

    @property
    def b_start(self) -> int:
        end = self.hardware.half_scratchpad * (2 if self.op.b_spad_id == 2 else 1)
        return end - self.weight_rows


def conv_commands(
    tile: ConvLoop, bias_row: int, sum_row: int, store: c.ConfigStore, *, full: bool = False
) -> Iterator[Command]:
    """Yield commands for bias, image, weights, matmuls, and results with or without pooling.

    LOOP_CONV_WS itself has no `full` results: i32, where there is no pooling.
    """
    sums = (ACCUMULATOR | ACCUMULATE) + sum_row
    if tile.bias:
        yield from _conv_bias(tile, ACCUMULATOR + bias_row)
    if tile.input:
        yield from _conv_input(tile)
    if tile.weights:
        yield from _conv_weights(tile)
    yield from _conv_matmuls(tile, sums)
    if not tile.output:
        return
    yield from (
        _conv_results(tile, sums, full) if tile.op.no_pool else _store_pooled(tile, sums, store)
    )


def _conv_bias(tile: ConvLoop, start: int) -> Iterator[Command]:
    dim, orows, ocols = tile.hardware.dim, tile.sizes.orows, tile.sizes.ocols
    yield c.ConfigLoad(id=2, block_stride=tile.out_pixels, stride=0)
    most = min(tile.pool.pochs, tile.hardware.acc_block * dim)
    for row in range(tile.pool.batches * orows):
        for ocol in range(0, ocols, dim):
            for och in range(0, tile.pool.pochs, most):
                local = start + och // dim * tile.out_pixels + row * ocols + ocol
                at = 0 if tile.op.no_bias else tile.bias + och * 4
                size = {"rows": min(dim, ocols - ocol), "cols": min(most, tile.pool.pochs - och)}
                yield c.Mvin3(at, local, **size)


def _conv_input(tile: ConvLoop) -> Iterator[Command]:
    transposed, dim, ichs = bool(tile.op.trans_input_3120), tile.hardware.dim, tile.kernel.kchs
    batches, image, kernel = tile.pool.batches, tile.image, tile.kernel
    most = min(batches if transposed else ichs, tile.hardware.block * dim)
    stride = image.batch_size if transposed else tile.sizes.in_stride
    spad_stride = (ichs if transposed else batches) * tile.in_pixels
    yield c.ConfigLoad(
        stride=tile.up(stride),
        block_stride=spad_stride,
        pixel_repeats=tile.op.max_pixels_per_row or 1,
    )
    (_, irows), (icols_padded, icols) = tile.in_rows, tile.in_cols
    upad, dpad, lpad, rpad = map(
        tile.undilated, (kernel.upad, kernel.dpad, kernel.lpad, kernel.rpad)
    )
    for b in range(0, batches, most if transposed else 1):
        for irow in range(-upad, irows + dpad, tile.up(1)):
            for icol, pixels in _runs(tile, icols, lpad, rpad):
                for ich in range(0, ichs, 1 if transposed else most):
                    count = min(most, batches - b) if transposed else min(most, ichs - ich)
                    outer, inner = (b, ich) if transposed else (ich, b)
                    local = tile.a_start + outer // dim * spad_stride + inner * tile.in_pixels
                    local += tile.down(irow + upad) * tile.down(icols_padded)
                    local += tile.down(icol + lpad)
                    at = tile.input
                    if not (0 <= irow < irows and 0 <= icol < icols):
                        at = 0
                    elif transposed:
                        at += _pixel(tile, ich, irow, icol) * image.batch_size + b
                    else:
                        at += _pixel(tile, b, irow, icol) * tile.sizes.in_stride + ich
                    yield c.Mvin(at, local, rows=tile.down(pixels), cols=count)


def _pixel(tile: ConvLoop, image: int, row: int, col: int) -> int:
    return (image * tile.image.in_row_dim + row) * tile.kernel.in_col_dim + col


def _runs(tile: ConvLoop, inner: int, before: int, after: int) -> Iterator[tuple[int, int]]:
    """Yield the runs of pixels of a row that are moved at a time: the padding by itself."""
    dim, col = tile.hardware.dim, -before
    while col < inner + after:
        if col < 0:
            pixels = min(dim, -col)
        elif col >= inner:
            pixels = min(dim, inner + after - col)
        else:
            pixels = min(tile.up(dim), inner - col)
        yield col, pixels
        col += pixels


def _conv_weights(tile: ConvLoop) -> Iterator[Command]:
    op, image, kernel, dim = tile.op, tile.image, tile.kernel, tile.hardware.dim
    ochs, kchs, side = tile.pool.pochs, kernel.kchs, tile.pool.kernel_dim
    flipped = bool(op.trans_weight_0132)
    most = min(kchs if flipped else ochs, tile.hardware.block * dim)
    stride = tile.sizes.weight_stride
    if op.depthwise:
        stride = 1
    elif op.trans_weight_1203:
        stride = side * side * image.out_channels
    elif flipped:
        stride = image.in_channels
    block = tile.taps * (ochs if flipped else kchs)
    yield c.ConfigLoad(id=1, stride=stride, block_stride=block)
    for och in range(0, ochs, dim if flipped else most):
        for tap in range(tile.taps):
            krow, kcol = divmod(tap, kernel.kcols)
            for kch in range(0, kchs, most if flipped else dim):
                if flipped:
                    rows, cols = min(dim, ochs - och), min(most, kchs - kch)
                    local = kch // dim * block + tap * ochs + och
                else:
                    rows, cols = min(dim, kchs - kch), min(most, ochs - och)
                    local = och // dim * block + tap * kchs + kch
                place = krow * side + kcol
                if op.depthwise:
                    at = place
                elif op.trans_weight_1203:
                    at = (kch * side * side + place) * image.out_channels + och
                elif flipped:
                    at = (place * image.out_channels + och) * image.in_channels + kch
                else:
                    at = (place * image.in_channels + kch) * tile.sizes.weight_stride + och
                yield c.Mvin2(tile.weights + at, tile.b_start + local, rows=rows, cols=cols)


def _conv_matmuls(tile: ConvLoop, start: int) -> Iterator[Command]:
    op, kernel, sizes, dim = tile.op, tile.kernel, tile.sizes, tile.hardware.dim
    transposed, ochs, kchs = bool(op.trans_input_3120), tile.pool.pochs, kernel.kchs
    at_once = op.max_pixels_per_row or 1
    if transposed:
        yield c.ConfigExecute(
            only_strides=1,
            a_stride=tile.in_rows[0] * tile.in_cols[0],
            c_stride=sizes.orows * sizes.ocols,
        )
    for och in range(0, ochs, dim):
        for krow in range(kernel.krows):
            for kcol in range(0, kernel.kcols, at_once):
                pixels = min(at_once, kernel.kcols - kcol)
                for kch in range(0, kchs, dim):
                    depth = pixels * min(dim, kchs - kch)
                    cols = min(dim, ochs - och)
                    held = _weight_row(tile, och, krow, kcol, kch)
                    for b, orow, ocol, rows in _positions(tile, krow, kcol):
                        out = start + och // dim * tile.out_pixels
                        out += (b * sizes.orows + orow) * sizes.ocols + ocol
                        yield c.Preload(held, cols, depth, out, cols, rows)
                        compute = c.ComputeAccumulated if held == GARBAGE else c.ComputePreloaded
                        a = _image_row(tile, b, kch, orow, ocol, krow, kcol)
                        yield compute(a, depth, rows, GARBAGE, cols, rows)
                        held = GARBAGE


def _positions(tile: ConvLoop, krow: int, kcol: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield sample, row and column of each run of outputs, and how many there are."""
    op, sizes, dim = tile.op, tile.sizes, tile.hardware.dim
    transposed, dilated, dilation = op.trans_input_3120, op.input_dilated, sizes.kernel_dilation
    step = 1 if transposed else dim << dilated
    for b in range(0, tile.pool.batches, dim if transposed else 1):
        for orow in range(sizes.orows):
            if dilated and (krow * dilation + orow - tile.kernel.upad) % 2:
                continue
            ocol = 0
            while ocol < sizes.ocols:
                if dilated and (kcol * dilation + ocol - tile.kernel.lpad) % 2:
                    ocol += 1
                    continue
                rows = tile.undilated(min(dim << dilated, sizes.ocols - ocol))
                yield b, orow, ocol, min(dim, tile.pool.batches - b) if transposed else rows
                ocol += step


def _weight_row(tile: ConvLoop, och: int, krow: int, kcol: int, kch: int) -> int:
    kernel, dim = tile.kernel, tile.hardware.dim
    if tile.op.wrot180:
        krow, kcol = kernel.krows - krow - 1, kernel.kcols - kcol - 1
    tap = krow * kernel.kcols + kcol
    if tile.op.trans_weight_0132:
        ochs = tile.pool.pochs
        return tile.b_start + (kch // dim * tile.taps + tap) * ochs + och
    return tile.b_start + (och // dim * tile.taps + tap) * kernel.kchs + kch


def _image_row(tile: ConvLoop, b: int, kch: int, orow: int, ocol: int, krow: int, kcol: int) -> int:
    dim, dilation, stride = tile.hardware.dim, tile.sizes.kernel_dilation, tile.image.stride
    irow = tile.down(tile.undilated(orow * stride + krow * dilation))
    icol = tile.down(tile.undilated(ocol * stride + kcol * dilation))
    if tile.op.trans_input_3120:
        plane = b // dim * tile.kernel.kchs + kch
    else:
        plane = kch // dim * tile.pool.batches + b
    return tile.a_start + plane * tile.in_pixels + irow * tile.down(tile.in_cols[0]) + icol


def _conv_results(tile: ConvLoop, start: int, full: bool) -> Iterator[Command]:
    dim, image, sizes = tile.hardware.dim, tile.image, tile.sizes
    if full:
        start |= FULL
    for b in range(tile.pool.batches):
        for orow in range(sizes.orows):
            for ocol in range(0, sizes.ocols, dim):
                for och in range(0, tile.pool.pochs, dim):
                    local = start + och // dim * tile.out_pixels
                    local += (b * sizes.orows + orow) * sizes.ocols + ocol
                    pixel = (b * image.out_row_dim + orow) * image.out_col_dim + ocol
                    at = pixel * sizes.out_stride + och
                    if tile.op.trans_output_1203:
                        pixel = (orow * image.out_col_dim + ocol) * image.batch_size + b
                        at = pixel * image.out_channels + och
                    size = {
                        "rows": min(dim, sizes.ocols - ocol),
                        "cols": min(dim, tile.pool.pochs - och),
                    }
                    yield c.Mvout(tile.output + at * (4 if full else 1), local, **size)


def _store_pooled(tile: ConvLoop, start: int, store: c.ConfigStore) -> Iterator[Command]:
    dim, pool, sizes = tile.hardware.dim, tile.pool, tile.sizes
    plain = c.ConfigStore(activation=tile.op.activation, stride=sizes.out_stride, scale=store.scale)
    yield replace(
        plain,
        pool_stride=pool.pool_stride,
        pool_size=pool.pool_size,
        upad=sizes.pupad,
        lpad=tile.kernel.plpad,
        pool_out_dim=pool.pool_out_col_dim,
        porows=pool.porows,
        pocols=pool.pocols,
        orows=sizes.orows,
        ocols=sizes.ocols,
    )
    pooled = tile.image.pool_out_row_dim * pool.pool_out_col_dim
    for b in range(pool.batches):
        for poch in range(0, pool.pochs, dim):
            local = start + poch // dim * tile.out_pixels + b * sizes.orows * sizes.ocols
            at = tile.output + b * pooled * sizes.out_stride + poch
            yield c.Mvout(at, local, rows=0, cols=min(dim, pool.pochs - poch))
    yield plain
