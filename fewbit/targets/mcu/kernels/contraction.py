"""Matmuls and convolutions: rows of activations, some at a time, and a tile for each of them.

A row is a row of a matrix, a pixel of an image, or a window that is gathered to one; where the
kernel reads it as it lies, nothing is copied. The last rows are computed with some before them
again, so that there is one tile for each layer. All sizes are known when the function is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.llvm.types import I32
from fewbit.llvm.values import Value
from fewbit.targets.mcu.core import Core, Family
from fewbit.targets.mcu.kernels.function import Code, Kernel, joined, name_of
from fewbit.targets.mcu.kernels.tile import GROUP, ONES, Tile, pairs_of, tile
from fewbit.targets.mcu.layout import Layout

MOST_ROOM = 4096
"""Bytes of rows at a time, at most, if there is a choice."""


@dataclass(frozen=True)
class Windows:
    """Windows of images of height x width x channels."""

    height: int
    width: int
    channels: int
    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    start: tuple[int, int]
    """Rows and columns of padding before the image."""
    out: tuple[int, int]
    """Windows along the height and the width."""

    @property
    def depth(self) -> int:
        return self.channels * self.size[0] * self.size[1]

    @property
    def is_pointwise(self) -> bool:
        """Whether windows are the pixels, one after another."""
        return self.size == self.stride == (1, 1) and self.out == (self.height, self.width)

    @property
    def is_padded(self) -> bool:
        """Whether some windows reach beyond the image."""
        return any(self.start) or any(
            (out - 1) * stride + (size - 1) * dilation >= length
            for out, stride, size, dilation, length in zip(
                self.out, self.stride, self.size, self.dilation,
                (self.height, self.width), strict=True,
            )
        )  # fmt: skip

    @property
    def name(self) -> str:
        sizes = (self.height, self.width, self.channels)
        pairs = (self.size, self.stride, self.dilation, self.start, self.out)
        return name_of(joined(sizes), *map(joined, pairs))


@dataclass(frozen=True)
class Contraction:
    """Some images of rows, times weights."""

    images: int
    rows: int
    """Rows of each image; of a matrix, which is one image, all."""
    windows: Windows | None
    tile: Tile

    @property
    def name(self) -> str:
        where = "rows" if self.windows is None else self.windows.name
        return name_of("layer", self.images, self.rows, where, self.tile.name)


def shape_of_tile(core: Core, bits: int, rows: int, k: int, n: int) -> tuple[int, int]:
    """Return the rows and columns of a tile for a layer of these sizes."""
    most = _fitting_rows(core.family, bits, k)
    if core.family == "dsp":
        most_rows = 6 if bits == 8 else 5
        tall, wide = (most_rows, 1) if rows >= most_rows else (1, 4)
    elif core.family == "mve":
        tall, wide = (2, 2) if rows >= 2 else (1, 4)
    elif core.isa.registers <= 16:
        tall, wide = 3, 2
    else:
        tall, wide = 5, 2
    return min(tall, rows, most), min(wide, n)


def _fitting_rows(family: Family, bits: int, k: int) -> int:
    depth = Layout(family, bits, 1).depth(k)
    return max(1, MOST_ROOM // (depth * (2 if family == "dsp" else 1)))


def contraction(code: Code, wanted: Contraction) -> tuple[Kernel, int]:
    """Return the function of a layer, and the bytes of room that it needs."""
    writer = _Writer(code, wanted)
    return code.find(wanted.name) or code.add(writer.write()), writer.room_bytes


class _Writer:
    def __init__(self, code: Code, wanted: Contraction) -> None:
        self.code, self.wanted, self.tile = code, wanted, wanted.tile
        layout, k = wanted.tile.layout, wanted.tile.k
        self.depth = layout.depth(k)
        self.is_dsp = layout.family == "dsp"
        plain_rows = wanted.windows is None or wanted.windows.is_pointwise
        self.is_direct = plain_rows and self.depth == k
        self.row_room = 0 if self.is_direct else self.depth * (1 if self.is_dsp else self.tile.rows)
        self.pair_room = self.tile.pair_bytes + 4 * self.tile.rows if self.is_dsp else 0

    @property
    def room_bytes(self) -> int:
        return self.pair_room + self.row_room

    def write(self) -> Kernel:
        wanted, tile_ = self.wanted, self.tile
        f = Kernel(
            self.code.core,
            wanted.name,
            "ptr x, ptr weight, ptr table, ptr room, ptr x_scale, ptr add, ptr y, ptr q",
        )
        x, weight, table, room, x_scale, add, y, q = f.parameters
        gathered = f.at(room, self.pair_room, "i8")
        if self.row_room:
            f.fill(gathered, self.row_room)
        of_rows = tile(self.code, tile_)
        if tile_.epilogue.kind == "channels":
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
                is_sum = tile_.epilogue.kind == "channels"
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
            return self.wanted.rows * self.tile.k
        return windows.height * windows.width * windows.channels

    def _rows(self, f: Kernel, image: Value, first: Value, room: Value, gathered: Value) -> Value:
        """Return where the rows of a tile are, which are gathered and widened where needed."""
        if self.is_direct and not self.is_dsp:
            return f.at(image, first * self.tile.k, "i8")
        with f.loop(0, self.tile.rows, hot=True) as loop:
            number = first + loop.index
            if self.is_direct:
                row = f.at(image, number * self.tile.k, "i8")
            else:
                row = gathered if self.is_dsp else f.at(gathered, loop.index * self.depth, "i8")
                f.call(self._gather(), image, row, number)
            if self.is_dsp:
                sums = f.at(f.at(room, self.tile.pair_bytes, "i8"), loop.index, "i32")
                f.call(self._widen(), row, f.at(room, loop.index * 8, "i8"), sums)
        return room if self.is_dsp else gathered

    def _widen(self) -> Kernel:
        """Return the function that makes pairs of a row, and adds up its elements."""
        tile_ = self.tile
        name = name_of("widen", self.depth, tile_.rows, "s" if tile_.needs_sums else "")
        if (found := self.code.find(name)) is not None:
            return found
        f = Kernel(self.code.core, name, "ptr row, ptr to, ptr sums")
        row, to, sums = f.parameters
        total = [f.integer(0)] if tile_.needs_sums else []
        count = self.depth // GROUP
        with f.loop(0, count, carried=[row, to, *total], hot=True) as loop:
            at, out, *total = loop.carried
            for i, pair in enumerate(pairs_of(f, f.word(at))):
                f.store(pair, out, i, align=4)
                total = [
                    f.intrinsic("arm.smlad", I32, pair, f.number32(ONES), each) for each in total
                ]
            step = tile_.rows * 2 * GROUP
            loop.carry(f.at(at, GROUP, "i8"), f.at(out, step, "i8"), *total)
        if tile_.needs_sums:
            f.store(loop.results[-1], sums, align=4)
        return self.code.add(f)

    def _gather(self) -> Kernel:
        windows = self.wanted.windows
        if windows is None or windows.is_pointwise:
            return copy_row(self.code, self.tile.k)
        return gather(self.code, windows)


def copy_row(code: Code, k: int) -> Kernel:
    """Return the function that copies a row which has no padding behind it."""
    name = name_of("row", k)
    if (found := code.find(name)) is not None:
        return found
    f = Kernel(code.core, name, "ptr x, ptr row, index number")
    x, row, number = f.parameters
    f.copy(f.at(x, number * k, "i8"), row, k, aligned=k % 4 == 0)
    return code.add(f)


def gather(code: Code, windows: Windows) -> Kernel:
    """Return the function that copies a window to a row, with zeros for what is outside."""
    name = name_of("gather", windows.name)
    if (found := code.find(name)) is not None:
        return found
    f = Kernel(code.core, name, "ptr x, ptr row, index number")
    x, row, number = f.parameters
    w, (kh, kw), (down, right) = windows, windows.size, windows.dilation
    line_number = number // w.out[1]
    top = line_number * w.stride[0] - w.start[0]
    left = (number - line_number * w.out[1]) * w.stride[1] - w.start[1]
    aligned = w.channels % 4 == 0
    if w.is_padded:
        f.fill(row, w.depth)
    with f.loop(0, kh, hot=True) as lines:
        line = top + lines.index * down
        to = f.at(row, lines.index * (kw * w.channels), "i8")

        def copy() -> None:
            source = f.at(x, (line * w.width + left) * w.channels, "i8")
            if right == 1:
                _copy_run(f, w, left, source, to, aligned=aligned)
                return
            with f.loop(0, kw, hot=True) as across:
                given = f.at(source, across.index * (right * w.channels), "i8")
                place = f.at(to, across.index * w.channels, "i8")
                seen = (left + across.index * right).inside(w.width)
                with f.when(seen):
                    f.copy(given, place, w.channels, aligned=aligned)

        if w.is_padded:
            with f.when(line.inside(w.height)):
                copy()
        else:
            copy()
    return code.add(f)


def _copy_run(
    f: Kernel, w: Windows, left: Value, source: Value, to: Value, *, aligned: bool
) -> None:
    """Copy neighbouring pixels, as far as they are in the image."""
    kw = w.size[1]
    if not w.is_padded:
        f.copy(source, to, kw * w.channels, aligned=aligned)
        return
    begin = f.larger(f.integer(0) - left, 0)
    end = f.smaller(f.integer(w.width) - left, kw)
    first = begin * w.channels
    count = (f.larger(end, begin) - begin) * w.channels
    f.copy(f.at(source, first, "i8"), f.at(to, first, "i8"), count, aligned=aligned)
