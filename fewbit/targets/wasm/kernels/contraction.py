"""Matmuls and convolutions with vectors: rows of activations, and a tile for some of them.

Rows are gathered and widened, some at a time, unless the tile reads them as they lie. The last rows
are computed with some before them again, so that there is one tile for each layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.llvm.types import I8, I16, Vector
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.contraction import Windows, copy_row, gather
from fewbit.targets.mcu.kernels.function import Code, Kernel, name_of
from fewbit.targets.wasm.kernels.tile import VectorTile, tile

ACCUMULATORS = 8
"""Vectors of accumulators, at most: with more, engines run out of the 16 registers of x86-64."""
MOST_ROWS, MOST_VECTORS = 8, 4
WIDENED = 8
"""Bytes that are widened at once."""


@dataclass(frozen=True)
class VectorContraction:
    """Some images of rows, times weights."""

    images: int
    rows: int
    """Rows of each image; of a matrix, which is one image, all."""
    windows: Windows | None
    tile: VectorTile

    @property
    def name(self) -> str:
        where = "rows" if self.windows is None else self.windows.name
        return name_of("layer", self.images, self.rows, where, self.tile.name)


def shape_of_tile(rows: int, n: int, *, exact: bool) -> tuple[int, int]:
    """Return the rows and vectors of a tile; `exact` ones compute nothing twice.

    What a shape costs are its dot products and loads, those of what is computed twice with them.
    """
    shapes = [
        (tall, vectors)
        for tall in range(1, min(MOST_ROWS, rows) + 1)
        for vectors in range(1, MOST_VECTORS + 1)
        if tall * vectors <= ACCUMULATORS
        and 4 * vectors <= n
        and (not exact or (rows % tall == 0 and n % (4 * vectors) == 0))
    ]

    def cost(shape: tuple[int, int]) -> float:
        tall, vectors = shape
        tiles = -(-rows // tall) * -(-n // (4 * vectors))
        return tiles * (2 * tall * vectors + tall + 1.5 * vectors + 1)

    return min(shapes, key=cost)


def contraction(code: Code, wanted: VectorContraction) -> tuple[Kernel, int]:
    """Return the function of a layer, and the bytes of room that it needs."""
    writer = _Writer(code, wanted)
    return code.find(wanted.name) or code.add(writer.write()), writer.room_bytes


class _Writer:
    def __init__(self, code: Code, wanted: VectorContraction) -> None:
        self.code, self.wanted, self.tile = code, wanted, wanted.tile
        tile_ = wanted.tile
        self.k, self.depth = tile_.segments.depth, tile_.segments.rows_apart
        self.is_widened = not tile_.layout.has_bytes
        plain_rows = wanted.windows is None or wanted.windows.is_pointwise
        self.is_direct = plain_rows and self.depth == self.k
        self.row_room = 0 if self.is_direct else whole(self.depth * tile_.rows)
        self.wide_room = whole(2 * self.depth * tile_.rows) if self.is_widened else 0

    @property
    def room_bytes(self) -> int:
        return self.wide_room + self.row_room

    def write(self) -> Kernel:
        wanted, tile_ = self.wanted, self.tile
        f = Kernel(
            self.code.core,
            wanted.name,
            "ptr x, ptr weight, ptr table, ptr room, ptr x_scale, ptr add, ptr y, ptr q",
        )
        x, weight, table, room, x_scale, add, y, q = f.parameters
        gathered = f.at(room, self.wide_room, "i8")
        if self.row_room:
            f.fill(gathered, self.row_room)
        of_rows = tile(self.code, tile_)
        is_sum = tile_.epilogue.kind == "channels"
        if is_sum:
            f.fill(y, 4 * wanted.images * tile_.n)
        with f.loop(0, wanted.images, hot=True) as images:
            image = f.at(x, images.index * self._image_bytes, "i8")
            start = images.index * wanted.rows
            with f.loop(0, wanted.rows, tile_.rows, hot=True) as loop:
                first = loop.index
                if wanted.rows % tile_.rows:
                    first = f.smaller(first, wanted.rows - tile_.rows)
                rows = self._rows(f, image, first, room, gathered)
                row = start + first
                place = images.index * tile_.n if is_sum else row * tile_.n
                scale = f.at(x_scale, row if tile_.has_row_scales else images.index, "float")
                f.call(
                    of_rows, rows, weight, table, scale,
                    f.at(add, place, "float"), f.at(y, place, "float"), f.at(q, place, "i8"),
                )  # fmt: skip
        return f

    @property
    def _image_bytes(self) -> int:
        windows = self.wanted.windows
        if windows is None:
            return self.wanted.rows * self.k
        return windows.height * windows.width * windows.channels

    def _rows(self, f: Kernel, image: Value, first: Value, room: Value, gathered: Value) -> Value:
        """Return where the rows of a tile are, which are gathered and widened where needed."""
        rows = gathered
        if self.is_direct:
            rows = f.at(image, first * self.k, "i8")
        else:
            with f.loop(0, self.tile.rows, hot=True) as loop:
                row = f.at(gathered, loop.index * self.depth, "i8")
                f.call(self._gather(), image, row, first + loop.index)
        if not self.is_widened:
            return rows
        f.call(widen(self.code, self.depth * self.tile.rows), rows, room)
        return room

    def _gather(self) -> Kernel:
        windows = self.wanted.windows
        if windows is None or windows.is_pointwise:
            return copy_row(self.code, self.k)
        return gather(self.code, windows)


def whole(size: int) -> int:
    """Return a size in whole vectors."""
    return -(-size // 16) * 16


def widen(code: Code, count: int) -> Kernel:
    """Return the function that makes 16 bits of each of some bytes."""
    name = name_of("widen", count)
    if (found := code.find(name)) is not None:
        return found
    f = Kernel(code.core, name, "ptr rows, ptr to")
    rows, to = f.parameters
    runs, rest = divmod(count, WIDENED)
    if runs:
        with f.loop(0, runs, carried=[rows, to], hot=True) as loop:
            at, out = loop.carried
            values = f.load(Vector(WIDENED, I8), at, align=1)
            f.store(f.convert("sext", values, I16), out, align=2)
            loop.carry(f.at(at, WIDENED, "i8"), f.at(out, 2 * WIDENED, "i8"))
        rows, to = loop.results
    for i in range(rest):
        f.store(f.convert("sext", f.load(I8, rows, i), I16), to, i, align=2)
    return code.add(f)
