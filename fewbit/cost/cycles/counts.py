"""What a layer executes, counted from its shape and widths: the terms of the cycle model.

The counts follow the loops of MiCo's library, which the published cycles were measured with. A
matmul walks over words: for each word of the wider operand one load, one dot product and one
addition (`dots`), for each word of the narrower one more load (`narrow`). Kernels in assembly make
a step of 32 elements (`steps`), those in C one of a word of the narrower operand. Rows of the first
operand stay while those of the second stream by: activations stay in a linear layer, weights in a
convolution.

`misses` counts lines that come from memory, for all buffers alike, because a miss costs the same
wherever it happens.
"""

from __future__ import annotations

from math import ceil

from fewbit.cost.cycles.cache import LINE, Cache
from fewbit.cost.cycles.shapes import Conv2d, Linear, Matmul, Pool, Shape

Counts = dict[str, float]

WORD = 32
BLOCK_ROWS = 2
"""Rows of the output that a convolution unfolds at a time."""


def count(shape: Shape, act_bits: int, weight_bits: int, cache: Cache | None) -> Counts:
    """Return the terms of a layer; without a cache there are no misses."""
    match shape:
        case Linear():
            return _linear(shape, act_bits, weight_bits, cache)
        case Matmul():
            return _matmul(shape, act_bits, weight_bits, cache)
        case Conv2d():
            return _conv2d(shape, act_bits, weight_bits, cache)
        case Pool():
            return _pool(shape)


def _matmul_counts(
    rows: int, streamed: int, inputs: int, bits: tuple[int, int], cache: Cache | None
) -> Counts:
    """Return the terms of `rows` that stay by rows that are `streamed`, of these two widths."""
    padded = ceil(inputs / WORD) * WORD
    wide, narrow = max(bits), min(bits)
    outputs = rows * streamed
    counts: Counts = {
        "outputs": outputs,
        "loops": outputs if padded * narrow > WORD else 0,
        "dots": outputs * padded * wide / WORD,
        "narrow": outputs * padded * narrow / WORD,
        "steps": outputs * padded / WORD,
        "rows": rows,
    }
    if cache is not None:
        row, stream = padded * bits[0] / 8, padded * bits[1] / 8
        counts["misses"] = (
            outputs * stream / LINE * cache.missed(streamed * stream + row)
            + outputs * row / LINE * cache.missed(row + stream)
            + rows * row / LINE * cache.missed(rows * row + streamed * stream)
        )
    return counts


def _matmul(shape: Matmul, act_bits: int, weight_bits: int, cache: Cache | None) -> Counts:
    counts = _matmul_counts(shape.rows, shape.outputs, shape.inputs, (act_bits, weight_bits), cache)
    return counts | {"calls": 1}


def _linear(shape: Linear, act_bits: int, weight_bits: int, cache: Cache | None) -> Counts:
    counts = _matmul(shape, act_bits, weight_bits, cache)
    elements, outputs = shape.rows * shape.inputs, shape.rows * shape.outputs
    counts |= {"elements": elements, f"elements{act_bits}": elements}
    if cache is not None:
        counts["misses"] += 2 * elements * 4 / LINE * cache.missed(elements * 4)
        counts["misses"] += 3 * outputs * 4 / LINE * cache.missed(outputs * 8)
        if cache.ways == 1 and outputs * 4 % cache.size == 0:
            # Sums and results lie a multiple of the cache apart and evict each other.
            counts["misses"] += 2 * outputs
    return counts


def _conv2d(shape: Conv2d, act_bits: int, weight_bits: int, cache: Cache | None) -> Counts:
    rows, columns = shape.image
    times = shape.batch * shape.groups
    whole, remainder = divmod(rows, BLOCK_ROWS)
    total: Counts = {}
    for blocks, height in ((whole, BLOCK_ROWS), (remainder, 1)):
        if blocks:
            block = _block(shape, height * columns, height, (act_bits, weight_bits), cache)
            for name, number in block.items():
                total[name] = total.get(name, 0) + blocks * times * number
    return total | {"calls": 1}


def _block(
    shape: Conv2d, pixels: int, height: int, bits: tuple[int, int], cache: Cache | None
) -> Counts:
    act_bits, weight_bits = bits
    inputs, outputs = shape.inputs // shape.groups, shape.outputs // shape.groups
    window = inputs * shape.kernel[0] * shape.kernel[1]
    padding = -window % WORD
    counts = _matmul_counts(outputs, pixels, window, (weight_bits, act_bits), cache)
    counts |= {
        "elements": pixels * window,
        f"elements{act_bits}": pixels * window,
        f"padding{act_bits}": pixels * padding,
        "channels": window * height,
        "blocks": 1,
    }
    if cache is not None:
        counts["misses"] += _unfolding_misses(shape, pixels, height, window, cache)
        sums = pixels * outputs * 4
        counts["misses"] += sums / LINE * cache.missed(sums)
    return counts


def _unfolding_misses(shape: Conv2d, pixels: int, height: int, window: int, cache: Cache) -> float:
    """Return the misses of im2col: written by columns, then read for maximum and quantization."""
    unfolded = pixels * window * 4
    written = max(cache.missed_column(pixels, 4 * window), cache.missed(unfolded) / 16)
    width = (shape.image[1] - 1) * shape.stride[1] + shape.kernel[1]
    tall = (height - 1) * shape.stride[0] + shape.kernel[0]
    read = shape.inputs // shape.groups * tall * width * 4 / LINE
    return pixels * window * written + 2 * unfolded / LINE * cache.missed(unfolded) + read


def _pool(shape: Pool) -> Counts:
    outputs = shape.batch * shape.channels * shape.image[0] * shape.image[1]
    return {
        "calls": 1,
        "outputs": outputs,
        "lines": outputs * shape.kernel,
        "elements": outputs * shape.kernel**2,
    }
