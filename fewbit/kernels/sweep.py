"""The macrokernel: which rows and panels a microkernel is applied to, and by which thread.

`sweep` takes a block of rows over a range of panels. A panel is read by all tiles of the block
while it is near, and they fetch the next one meanwhile. Sums start from bias + add. A sum that is
cut into blocks goes on by adding to what it has written, in the same order, so neither blocks,
tiles nor threads change the bits of a result.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Generic, NamedTuple

from fewbit.kernels.activation import activate, with_activation
from fewbit.kernels.cuts import Arithmetic, S, T
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.pack import Panels
from fewbit.kernels.stored import NAMES, SIZES, Stored
from fewbit.kernels.tile import LINE, tile
from fewbit.numerics.approximations.activations import Activation
from fewbit.toolchain.isa import TALLEST, Isa

BLOCK_ROWS = 96
"""Rows that go over a panel before the next panel is taken."""
ROWS_EACH = 16
"""Rows that are enough for a thread to go over all panels."""
NEAR_WEIGHTS = 1 << 18
"""Weights that every thread may read: they stay in its cache."""


@dataclass(frozen=True)
class Weights:
    """A part of packed weights: `steps` of a sum of `k_total`, from `k_first` on.

    A step is one cell for each column, of so many bytes.
    """

    pointer: Value
    k_first: Value
    k_total: Value
    steps: Value
    cell: int = 4

    def panel(self, f: Function, column: Value, width: Value, k: Value) -> Value:
        return f.at(self.pointer, column * self.k_total + k * width, f"[{self.cell} x i8]")


@dataclass(frozen=True)
class Place:
    """Where a tile stands: its rows, its columns, and its panel. `shape` stands for its size."""

    row: Value
    height: Value
    column: Value
    columns: Value
    width: Value
    shape: Value
    panel: Value
    ahead: Value
    """A part of the next panel, to be prefetched meanwhile."""


@dataclass(frozen=True)
class Panel:
    """A panel of weights, so many vectors wide, and the one that is read after it."""

    weights: Weights
    column: Value
    columns: Value
    vectors: Value
    width: Value
    pointer: Value
    following: Value

    def place(self, f: Function, number: Value, row: Value, height: Value) -> Place:
        """Return the panel's tile of this number."""
        covers = number * LINE < self.width * self.weights.cell
        part = f.at(self.following, number * self.weights.steps * LINE, "i8")
        return Place(
            row,
            height,
            self.column,
            self.columns,
            self.width,
            self.vectors * 64 + height,
            self.pointer,
            f.select(covers, part, self.pointer),
        )


@contextmanager
def panels(f: Function, n: Value, first: Value, last: Value, w: Weights) -> Generator[Panel]:
    """Yield the panels `first` up to `last`."""
    isa, all_ = f.isa, Panels.of(f, n)
    with f.loop(first, last) as loop:
        column, vectors = all_.at(f, loop.index)
        width = vectors * isa.lanes
        follows = loop.index + 1 < last
        next_column, next_vectors = all_.at(f, f.select(follows, loop.index + 1, first))
        next_k = f.select(follows, w.k_first, w.k_first + w.steps)
        yield Panel(
            w,
            column,
            f.smaller(n - column, width),
            vectors,
            width,
            w.panel(f, column, width, w.k_first),
            w.panel(f, next_column, next_vectors * isa.lanes, next_k),
        )


@contextmanager
def places(
    f: Function,
    rows: Value,
    n: Value,
    first: Value,
    last: Value,
    w: Weights,
    tallest: int = TALLEST,
) -> Generator[Place]:
    """Yield the tiles of a block of rows on panels `first` up to `last`, about equally high."""
    with panels(f, n, first, last, w) as panel:
        highest = highest_tile(f, panel.vectors, tallest)
        with heights(f, rows, highest) as (number, row, height):
            yield panel.place(f, number, row, height)


def highest_tile(f: Arithmetic[T], vectors: T, tallest: int) -> T:
    """Return rows of the highest tile that is so many vectors wide."""
    highest = f.integer(tallest)
    for v in range(1, f.isa.tile_vectors + 1):
        highest = f.select(vectors.equals(v), min(tallest, f.isa.tile_rows(v)), highest)
    return highest


@dataclass(frozen=True)
class Heights(Generic[S]):
    """Rows in tiles about equally high: the first `higher` have one more than the `least`."""

    tiles: S
    least: S
    higher: S

    @staticmethod
    def of(f: Arithmetic[T], rows: T, highest: T | int) -> Heights[T]:
        tiles = f.ceiling(rows, highest)
        least = rows // tiles
        return Heights(tiles, least, rows - least * tiles)

    def row(self, f: Arithmetic[S], number: S) -> S:
        """Return the first row of a tile, or where the last one ends."""
        return number * self.least + f.smaller(number, self.higher)

    def height(self, f: Arithmetic[S], number: S) -> S:
        """Return how many rows a tile has."""
        return f.select(number < self.higher, self.least + 1, self.least)


@contextmanager
def tiles_between(
    f: Function, tiles: Heights, first: Value | int, last: Value
) -> Generator[tuple[Value, Value, Value]]:
    """Yield the tiles `first` up to `last`: their numbers, first rows and heights."""
    with f.loop(first, last) as loop:
        height = tiles.height(f, loop.index)
        yield loop.index, tiles.row(f, loop.index), height


@contextmanager
def heights(
    f: Function, rows: Value, highest: Value | int
) -> Generator[tuple[Value, Value, Value]]:
    """Yield each of the tiles that rows make: its number, first row and height."""
    tiles = Heights.of(f, rows, highest)
    with tiles_between(f, tiles, 0, tiles.tiles) as tile:
        yield tile


def shapes(isa: Isa, tallest: int = TALLEST) -> list[tuple[int, int, int]]:
    """Return every tile that there is: its number as a `shape`, its rows, its vectors."""
    return [
        (vectors * 64 + rows, rows, vectors)
        for vectors in range(1, isa.tile_vectors + 1)
        for rows in range(1, min(tallest, isa.tile_rows(vectors)) + 1)
    ]


@cache
def sweep(isa: Isa, activation: Activation | None = None, stored: Stored = "f32") -> Function:
    """Return the macrokernel: a block of rows, by their table, times panels `first` up to `last`.

    The block is the steps `k_first` and on of a sum of `k_total`: `taps` times `depth` of them.
    Where it `ends` the sum, that is activated.
    """
    f = Function(
        isa,
        f"fewbit_{with_activation(f'sweep_{NAMES[stored]}', activation)}",
        "ptr table, i64 rows, i64 taps, i64 depth, ptr w, i64 k_first, i64 k_total, "
        "ptr bias, ptr add, ptr c, i64 c_step, i64 columns, i64 first, i64 last, i64 ends, "
        "float lo, float hi",
    )
    table, rows, taps, depth, w, k_first, k_total, bias, add, c, c_step, n, *more = f.parameters
    first, last, ends, lo, hi = more
    waits = ends.equals(0) if activation is None else f.constant("i1", True)
    unbounded = [f.number(float("-inf")), f.number(float("inf"))]
    bounds = [f.select(waits, a, b) for a, b in zip(unbounded, (lo, hi), strict=True)]
    bias_start, bias_step = or_zeros(f, bias)
    add_start, add_step = or_zeros(f, add)
    add_row_step = c_step * add_step
    weights = Weights(w, k_first, k_total, taps * depth, SIZES[stored])
    with places(f, rows, n, first, last, weights) as p:
        f.switch(
            p.shape,
            [(number, tile(isa, r, v, stored)) for number, r, v in shapes(isa)],
            f.at(table, p.row, "ptr"),
            rows,
            taps,
            depth,
            p.panel,
            p.ahead,
            f.at(bias_start, p.column * bias_step),
            f.at(add_start, p.row * add_row_step + p.column * add_step),
            add_row_step,
            f.at(c, p.row * c_step + p.column),
            c_step,
            p.columns,
            *bounds,
        )
        if activation is not None:
            here = f.at(c, p.row * c_step + p.column)
            with f.when(ends.differs(0)):
                f.call(activate(isa, activation), here, c_step, p.height, p.columns, lo, hi)
    return f


def or_zeros(f: Function, pointer: Value) -> tuple[Value, Value]:
    """Return a pointer and the step 1; if it is null, zeros and the step 0."""
    absent = pointer.is_null()
    return f.select(absent, f.zeros(), pointer), f.select(absent, 0, 1)


class Share(NamedTuple, Generic[S]):
    """A thread's part: the rows `row_first` up to `row_last`, the panels `first` up to `last`."""

    row_first: S
    row_last: S
    first: S
    last: S


def share(f: Arithmetic[T], m: T, n: T, k: T, thread: T, threads: T) -> Share[T]:
    """Return the thread's part of m rows and n columns, sums of k.

    Rows are best: what a thread writes, it reads again in the next layer, and they divide evenly.
    Panels are where there are few rows, or many weights, which then only one thread has to read.
    """
    panels = Panels.of(f, n).count
    few_rows, many_weights = m < threads * ROWS_EACH, n * k > NEAR_WEIGHTS
    by_panels = (n > m) & (threads <= panels) & (few_rows | many_weights)
    units = f.select(by_panels, panels, m)
    start, stop = units * thread // threads, units * (thread + 1) // threads
    return Share(
        f.select(by_panels, 0, start),
        f.select(by_panels, m, stop),
        f.select(by_panels, start, 0),
        f.select(by_panels, stop, panels),
    )


def part_of_sum(
    f: Function, first: Value, bias: Value, add: Value, c: Value
) -> tuple[Value, Value]:
    """Return bias and add of a block of K: all but the first accumulate into c."""
    return f.select(first, bias, f.null()), f.select(first, add, c)


def row_of(f: Function, pointer: Value, offset: Value) -> Value:
    """Return the pointer moved on, or null if it is null."""
    return f.select(pointer.is_null(), pointer, f.at(pointer, offset))
