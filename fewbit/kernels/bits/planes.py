"""Few-bit numbers as bit planes, and their dot products by popcount.

A number is s · u - b, with u unsigned, as weights of fewer than 8 bits are stored: s is 2 for one
bit, which stands for -1 and 1, and else 1. With the bits u_i of a row and v_j of a column,

    Σ x · w = s · t · Σ_ij 2^(i+j) popcount(u_i & v_j)  -  c · Σ x  -  b · Σ (w + c)

where w = t · v - c. The second term is one number for a row, known when its bits are; the third is
one for a column, packed with the weight. Bits that fill up a word are 0 and count for nothing.

A word is 32 numbers. A *record* is a row, or a pixel of an image: its term, and then its planes,
one after another. A panel has, for each word, the planes of all its columns. Behind the panels are
the columns' terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.integer.fields import Fields
from fewbit.kernels.kernel import Bytes
from fewbit.kernels.pack import panel_starts
from fewbit.toolchain.isa import Isa

WORD = 32
"""Numbers whose bits one popcount takes, for each lane."""
TERM = 4
"""Bytes of a row's term."""


@dataclass(frozen=True)
class Pair:
    """Widths of activations and weights that are multiplied."""

    isa: Isa
    x_bits: int
    w_bits: int

    @property
    def name(self) -> str:
        """The pair in the names of functions."""
        return f"i{self.x_bits}w{self.w_bits}"

    @property
    def x(self) -> Fields:
        return Fields(self.isa, self.x_bits)

    @property
    def w(self) -> Fields:
        return Fields(self.isa, self.w_bits)

    @property
    def places(self) -> int:
        """Powers of two that products of bits have: each has an accumulator of its own."""
        return self.x_bits + self.w_bits - 1

    @property
    def lift(self) -> int:
        """Places by which all counts are shifted to the left in the end."""
        return self.x.lift + self.w.lift

    def words(self, depth: int) -> int:
        return -(-depth // WORD)

    def record(self, depth: int) -> int:
        """Return bytes of a record of so many numbers."""
        return TERM + self.words(depth) * WORD // 8 * self.x_bits

    @property
    def tallest(self) -> int:
        """Rows of a tile whose accumulators all fit in registers."""
        return max(1, self.isa.tile_rows(self.isa.tile_vectors) // self.places)


def pack_planes(weight: Bytes, pair: Pair) -> Bytes:
    """Return a weight [taps, depth, n] in panels of bits; each tap takes whole words."""
    taps, depth, n = weight.shape
    starts = panel_starts(n, pair.isa)
    words = pair.words(depth)
    numbers = np.zeros((taps, words * WORD, starts[-1]), np.uint8)
    numbers[:, :depth, :n] = pair.w.number(weight)
    rows = numbers.reshape(taps * words, WORD, starts[-1])
    planes = [np.packbits(rows >> i & 1, 1, "little") for i in range(pair.w_bits)]
    cells = np.stack(planes, 1).swapaxes(2, 3)  # [words, planes, columns, bytes]
    panels = [cells[:, :, a:b].ravel() for a, b in pairwise(starts)]
    terms = np.zeros(starts[-1], np.int32)
    terms[:n] = -pair.x.bias * (weight.astype(np.int32) + pair.w.bias).sum((0, 1), np.int32)
    return np.concatenate([*panels, terms.view(np.uint8)]).view(np.int8)


def unpack_planes(packed: Bytes, taps: int, depth: int, n: int, pair: Pair) -> Bytes:
    """Return the weight [taps, depth, n] that `pack_planes` has packed."""
    starts = panel_starts(n, pair.isa)
    words, at = taps * pair.words(depth), 0
    columns: list[NDArray[np.uint8]] = []
    for a, b in pairwise(starts):
        size = words * pair.w_bits * (b - a) * WORD // 8
        cells = packed[at : at + size].view(np.uint8)
        cells = cells.reshape(words, pair.w_bits, b - a, WORD // 8).swapaxes(2, 3)
        bits = np.unpackbits(cells, axis=2, bitorder="little")
        places = np.arange(pair.w_bits, dtype=np.uint8)[:, None, None]
        columns.append(np.bitwise_or.reduce(bits << places, axis=1))
        at += size
    numbers = np.concatenate(columns, 2).reshape(taps, -1, starts[-1])
    return pair.w.weight(numbers[:, :depth, :n])


def record_bytes(f: Function, pair: Pair, depth: Value) -> Value:
    """Return bytes of a record, in a function."""
    return f.ceiling(depth, WORD) * (WORD // 8 * pair.x_bits) + TERM


@cache
def pack_records(pair: Pair) -> Function:
    """Return the function that packs `count` rows of `depth` bytes, `step` apart, into records."""
    f = Function(
        pair.isa,
        f"fewbit_pack_records_{pair.name}",
        "ptr x, i64 step, i64 count, i64 depth, ptr to",
    )
    x, step, count, depth, to = f.parameters
    size = record_bytes(f, pair, depth)
    with f.loop(0, count) as loop:
        row, record = f.at(x, loop.index * step, "i8"), f.at(to, loop.index * size, "i8")
        f.call(pack_record(pair), row, depth, record)
    return f


@cache
def pack_record(pair: Pair) -> Function:
    """Return the function that packs a row of `depth` bytes into a record."""
    f = Function(pair.isa, f"fewbit_pack_record_{pair.name}", "ptr row, i64 depth, ptr record")
    row, depth, record = f.parameters
    to, plane_step = f.at(record, TERM, "i8"), f.ceiling(depth, WORD) * (WORD // 8)
    kind = f"<{WORD} x i8>"
    bias = f.broadcast(f.constant("i8", pair.x.bias), WORD)

    def pack(source: Value, at: Value, counted: Value) -> Value:
        """Store a word of each plane, and return the sum with its numbers added."""
        biased = f.load(kind, source) + bias
        for i in range(pair.x_bits):
            bit = f.broadcast(f.constant("i8", 1 << i + pair.x.lift), WORD)
            word = f.bits((biased & bit).differs(f.zero(kind)), "i32")
            f.store(word, f.at(to, plane_step * i + at // 8, "i8"))
            count = f.processor_call("ctpop.i32", "i32", word)
            counted = counted + count.shift_left(i + pair.x.lift)
        return counted

    whole = depth // WORD * WORD
    with f.loop(0, whole, WORD, carried=[f.constant("i32", 0)]) as loop:
        loop.carry(pack(f.at(row, loop.index, "i8"), loop.index, loop.carried[0]))
    (counted,) = loop.results
    last, sum_ = f.array("i8", WORD), f.array("i32", 1)
    f.store(counted, sum_)
    with f.when(whole < depth):
        f.store(f.zero(kind) - bias, last)
        with f.loop(whole, depth) as tail:
            f.store(f.load("i8", row, tail.index), last, tail.index - whole)
        f.store(pack(last, whole, counted), sum_)
    bias_sum = f.convert("trunc", depth * pair.x.bias, "i32")
    f.store((bias_sum - f.load("i32", sum_)) * pair.w.bias, record)
    return f
