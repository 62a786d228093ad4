"""Tiles: some rows times a block of channels, over the whole depth, and then the epilogue.

Accumulators are vectors of four channels. A run of neighbours of a row is loaded to all lanes, and
multiplied with that run of each channel: pairs of 16 bits by `dot`, to which rows are widened
beforehand and weights while they are loaded, or fours of bytes by the relaxed dot product, one of
whose factors is from 0 to 127: activations, where they are not negative, or weights that count from
0, and then a multiple of each row's sum is taken off at the end. Loops are not unrolled: LLVM would
load all of their operands first, and engines have no registers for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.llvm.types import I8, I16, I32, Vector
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.epilogue import Epilogue
from fewbit.targets.mcu.kernels.function import Code, Kernel, joined, name_of
from fewbit.targets.wasm.kernels.lanes import (
    BYTES,
    HALVES,
    WORDS,
    integers_of,
    load_channels,
    store_outputs,
)
from fewbit.targets.wasm.kernels.layout import LANES, VectorLayout

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Segments:
    """What a row of activations is: segments of neighbours, and where rows and segments lie."""

    count: int
    depth: int
    """Elements of a segment."""
    apart: int
    """Elements from one segment to the next."""
    rows_apart: int
    """Elements from one row to the next."""

    @property
    def name(self) -> str:
        return joined((self.count, self.depth, self.apart, self.rows_apart))


@dataclass(frozen=True)
class VectorTile:
    """A tile of `rows` rows, and all blocks of `n` channels."""

    layout: VectorLayout
    rows: int
    segments: Segments
    n: int
    epilogue: Epilogue
    has_row_scales: bool = False
    """Whether each row of activations has a scale; else there is one."""

    @property
    def name(self) -> str:
        layout, marks = self.layout, "r" if self.has_row_scales else "o"
        sizes = (self.rows, self.segments.name, self.n)
        return name_of("tile", layout.name, f"w{layout.bits}", *sizes, marks, self.epilogue.name)

    @property
    def element_bytes(self) -> int:
        """The bytes of an activation as the tile reads it."""
        return 1 if self.layout.has_bytes else 2

    @property
    def steps(self) -> int:
        """The steps of a segment."""
        return self.layout.steps(self.segments.depth)

    def pack(self, weight: Array) -> Array:
        """Return weights, N x segments x depth, as bytes: each segment has whole steps."""
        layout, segments = self.layout, self.segments
        shape = (len(weight), segments.count, layout.depth(segments.depth))
        padded = np.zeros(shape, weight.dtype)
        padded[..., : segments.depth] = weight
        return layout.pack(padded.reshape(len(weight), -1))


def tile(code: Code, wanted: VectorTile) -> Kernel:
    """Return the tile; its outputs are rows of n channels."""
    found = code.find(wanted.name)
    return found or code.add(_Writer(code, wanted).write())


class _Writer:
    def __init__(self, code: Code, wanted: VectorTile) -> None:
        self.tile, self.layout = wanted, wanted.layout
        self.f = Kernel(
            code.core,
            wanted.name,
            "ptr rows, ptr weight, ptr table, ptr x_scale, ptr add, ptr y, ptr q",
        )

    def write(self) -> Kernel:
        f, tile, layout = self.f, self.tile, self.layout
        rows, weight, table, *_ = f.parameters
        columns, n = layout.columns, tile.n
        accs = [f.zero(WORDS)] * (tile.rows * layout.vectors)
        self.sums = self._sum_rows(rows) if layout.offset else []
        with f.loop(0, n, columns, carried=[weight], hot=True) as over:
            (block,) = over.carried
            first = over.index if n % columns == 0 else f.smaller(over.index, n - columns)
            end, sums = self._sum(rows, block, accs)
            over.carry(end)
            self._finish(self._without_offset(sums), first, table)
        return f

    def _sum(self, rows: Value, block: Value, accs: list[Value]) -> tuple[Value, list[Value]]:
        """Return where the next block begins, and the sums of this one."""
        f, segments = self.f, self.tile.segments
        if segments.count == 1:
            return self._sum_segment(rows, block, accs)
        apart = segments.apart * self.tile.element_bytes
        with f.loop(0, segments.count, carried=[rows, block, *accs], hot=True) as loop:
            x, w, *sums = loop.carried
            w, sums = self._sum_segment(x, w, sums)
            loop.carry(f.at(x, apart, "i8"), w, *sums)
        _, end, *sums = loop.results
        return end, sums

    def _sum_segment(self, x: Value, w: Value, accs: list[Value]) -> tuple[Value, list[Value]]:
        f, layout = self.f, self.layout
        x_bytes = layout.step * self.tile.element_bytes
        w_bytes = layout.chunk_bytes * layout.vectors
        with f.loop(0, self.tile.steps, carried=[x, w, *accs], hot=True) as loop:
            x, w, *sums = loop.carried
            sums = self._step(x, w, sums)
            loop.carry(f.at(x, x_bytes, "i8"), f.at(w, w_bytes, "i8"), *sums)
        _, end, *sums = loop.results
        return end, sums

    def _sum_rows(self, rows: Value) -> list[Value]:
        """Return the sum of each row, in all lanes: of what is multiplied by an offset."""
        f, tile, segments = self.f, self.tile, self.tile.segments
        ones, zeros = f.constant(BYTES, 1), [f.zero(WORDS)] * tile.rows
        runs = tile.layout.depth(segments.depth) // tile.layout.run
        with f.loop(0, segments.count, carried=[rows, *zeros], hot=True) as lines:
            line, *sums = lines.carried
            with f.loop(0, runs, carried=[line, *sums], hot=True) as loop:
                x, *sums = loop.carried
                for row, acc in enumerate(sums):
                    sums[row] = self._relaxed_dot(self._run(x, row, 0), ones, acc)
                loop.carry(f.at(x, tile.layout.run, "i8"), *sums)
            lines.carry(f.at(line, segments.apart, "i8"), *loop.results[1:])
        return lines.results[1:]

    def _without_offset(self, accs: list[Value]) -> list[Value]:
        """Return sums of products with weights as they are, not as they are stored."""
        f, layout = self.f, self.layout
        if not layout.offset:
            return accs
        totals = [total for total in self.sums for _ in range(layout.vectors)]
        if layout.bits == 1:
            two = f.constant(WORDS, 1)
            return [total - acc.shift_left(two) for total, acc in zip(totals, accs, strict=True)]
        offset = f.constant(WORDS, layout.offset)
        return [acc - total * offset for total, acc in zip(totals, accs, strict=True)]

    def _run(self, x: Value, row: int, part: int) -> Value:
        """Load a run of neighbours of a row to all lanes."""
        f, tile = self.f, self.tile
        row_bytes = tile.segments.rows_apart * tile.element_bytes
        run = f.load(I32, f.at(x, row * row_bytes + 4 * part, "i8"), align=1)
        return f.bits(f.broadcast_to(run, LANES), BYTES if self.layout.has_bytes else HALVES)

    def _step(self, x: Value, w: Value, accs: list[Value]) -> list[Value]:
        layout = self.layout
        sums = list(accs)
        loaded = [self._load(w, vector) for vector in range(layout.vectors)]
        for part in range(layout.parts):
            weights = [self._field(each, part) for each in loaded]
            for row in range(self.tile.rows):
                run = self._run(x, row, part)
                for vector, weight in enumerate(weights):
                    index = row * layout.vectors + vector
                    sums[index] = self._dot(run, weight, sums[index])
        return sums

    def _load(self, chunks: Value, vector: int) -> Value:
        f, layout = self.f, self.layout
        at = f.at(chunks, vector * layout.chunk_bytes, "i8")
        if layout.has_bytes:
            return f.load(BYTES, at, align=1)
        return f.convert("sext", f.load(Vector(8, I8), at, align=1), I16)

    def _field(self, loaded: Value, part: int) -> Value:
        f, bits = self.f, self.layout.bits
        if bits == 8:
            return loaded
        if self.layout.has_bytes:
            moved = f.bits(loaded, HALVES).shift_right(f.constant(HALVES, bits * part))
            return f.bits(moved, BYTES) & f.constant(BYTES, (1 << bits) - 1)
        left = f.constant(HALVES, 16 - bits * (part + 1))
        fields = loaded.shift_left(left).shift_right_signed(f.constant(HALVES, 16 - bits))
        return fields | f.constant(HALVES, 1) if bits == 1 else fields

    def _dot(self, run: Value, weight: Value, acc: Value) -> Value:
        layout = self.layout
        if not layout.has_bytes:
            return acc + self.f.intrinsic("wasm.dot", WORDS, run, weight)
        if layout.offset:
            return self._relaxed_dot(run, weight, acc)
        return self._relaxed_dot(weight, run, acc)

    def _relaxed_dot(self, signed: Value, other: Value, acc: Value) -> Value:
        """Add products of bytes in fours; the second factor is from 0 to 127."""
        name = "wasm.relaxed.dot.i8x16.i7x16.add.signed"
        return self.f.intrinsic(name, WORDS, signed, other, acc)

    def _finish(self, accs: list[Value], first: Value, table: Value) -> None:
        f, tile, epilogue, vectors = self.f, self.tile, self.tile.epilogue, self.layout.vectors
        given = load_channels(f, epilogue, table, tile.n, first, vectors)
        rows = [accs[row * vectors : (row + 1) * vectors] for row in range(tile.rows)]
        if epilogue.kind == "channels":
            self._add_to_channels(rows, given, first)
            return
        one_scale = None
        if epilogue.kind == "floats" and not tile.has_row_scales:
            one_scale = f.load("float", f.parameter("x_scale"), 0, align=4)
        for row, some in enumerate(rows):
            scale = one_scale
            if epilogue.kind == "floats" and scale is None:
                scale = f.load("float", f.parameter("x_scale"), row, align=4)
            store_outputs(f, epilogue, some, given, scale, first + row * tile.n)

    def _add_to_channels(
        self, rows: list[list[Value]], given: list[dict[str, Value]], first: Value
    ) -> None:
        """Add what accumulators of channels become to their sums."""
        f = self.f
        for vector, channels in enumerate(given):
            at = f.at(f.parameter("y"), first + LANES * vector, I32)
            total = f.load(WORDS, at, align=4)
            for some in rows:
                total = total + integers_of(f, self.tile.epilogue, some[vector], channels)
            f.store(total, at, align=4)
