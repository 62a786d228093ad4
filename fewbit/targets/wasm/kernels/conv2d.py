"""Convolutions whose windows are read where they lie, in a copy of the image with its padding.

A window is as many segments as it has lines, of neighbours as wide as it is; windows side by side
are a constant distance apart, so a tile takes some of one line of outputs. The copy has 16 bits for
each number, or is of bytes, where these are multiplied. A tile reads some numbers behind a
segment, whose weights are 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.contraction import Windows
from fewbit.targets.mcu.kernels.function import Code, Kernel, name_of
from fewbit.targets.wasm.kernels.contraction import whole, widen
from fewbit.targets.wasm.kernels.layout import VectorLayout
from fewbit.targets.wasm.kernels.tile import Segments, VectorTile, tile

MOST_ROOM = 256 << 10
"""Bytes of a copy, at most."""
BEHIND = 64
"""Bytes that may be read behind the last segment."""


@dataclass(frozen=True)
class Plane:
    """An image with its padding."""

    windows: Windows
    has_bytes: bool

    @property
    def height(self) -> int:
        w = self.windows
        return _reach(w.height, w.out[0], w.stride[0], w.size[0], w.dilation[0], w.start[0])

    @property
    def width(self) -> int:
        w = self.windows
        return _reach(w.width, w.out[1], w.stride[1], w.size[1], w.dilation[1], w.start[1])

    @property
    def line(self) -> int:
        """Elements of a line."""
        return self.width * self.windows.channels

    @property
    def room_bytes(self) -> int:
        size = 1 if self.has_bytes else 2
        return whole(self.height * self.line * size + BEHIND)

    @property
    def segments(self) -> Segments:
        w = self.windows
        return Segments(
            w.size[0],
            w.size[1] * w.channels,
            w.dilation[0] * self.line,
            w.stride[1] * w.channels,
        )


def _reach(size: int, out: int, stride: int, window: int, dilation: int, start: int) -> int:
    """Return the length that windows need, and the image with what is before it."""
    return max(start + size, (out - 1) * stride + (window - 1) * dilation + 1)


def can_be_read_in_place(windows: Windows, layout: VectorLayout) -> bool:
    """Return whether there is room for a copy, and nothing behind a segment has a part in it.

    Weights of 1 bit cannot be 0.
    """
    if windows.is_pointwise or windows.dilation[1] != 1:
        return False
    plane = Plane(windows, layout.has_bytes)
    depth = plane.segments.depth
    is_whole = layout.bits > 1 or layout.depth(depth) == depth
    return is_whole and plane.room_bytes <= MOST_ROOM


@dataclass(frozen=True)
class Conv2d:
    images: int
    plane: Plane
    tile: VectorTile

    @property
    def name(self) -> str:
        return name_of("conv2d", self.images, self.plane.windows.name, self.tile.name)


def conv2d(code: Code, wanted: Conv2d) -> tuple[Kernel, int]:
    """Return the function of a layer, and the bytes of room that it needs."""
    found = code.find(wanted.name) or code.add(_write(code, wanted))
    return found, wanted.plane.room_bytes


def _write(code: Code, wanted: Conv2d) -> Kernel:
    plane, w, tile_ = wanted.plane, wanted.plane.windows, wanted.tile
    f = Kernel(
        code.core,
        wanted.name,
        "ptr x, ptr weight, ptr table, ptr room, ptr x_scale, ptr add, ptr y, ptr q",
    )
    x, weight, table, room, x_scale, add, y, q = f.parameters
    of_rows = tile(code, tile_)
    f.fill(room, plane.room_bytes)
    is_sum = tile_.epilogue.kind == "channels"
    if is_sum:
        f.fill(y, 4 * wanted.images * tile_.n)
    size = tile_.element_bytes
    with f.loop(0, wanted.images, hot=True) as images:
        _copy_image(f, code, plane, f.at(x, images.index * (w.height * w.width * w.channels), "i8"))
        scale = f.at(x_scale, images.index, "float")
        with f.loop(0, w.out[0], hot=True) as lines:
            line = f.at(room, lines.index * (w.stride[0] * plane.line * size), "i8")
            row = (images.index * w.out[0] + lines.index) * w.out[1]
            with f.loop(0, w.out[1], tile_.rows, hot=True) as loop:
                first = loop.index
                if w.out[1] % tile_.rows:
                    first = f.smaller(first, w.out[1] - tile_.rows)
                place = images.index * tile_.n if is_sum else (row + first) * tile_.n
                rows = f.at(line, first * (w.stride[1] * w.channels * size), "i8")
                f.call(
                    of_rows, rows, weight, table, scale,
                    f.at(add, place, "float"), f.at(y, place, "float"), f.at(q, place, "i8"),
                )  # fmt: skip
    return f


def _copy_image(f: Kernel, code: Code, plane: Plane, image: Value) -> None:
    """Copy the lines of an image to their places between the padding."""
    w = plane.windows
    line = w.width * w.channels
    size = 1 if plane.has_bytes else 2
    room = f.parameter("room")
    before = (w.start[0] * plane.line + w.start[1] * w.channels) * size
    with f.loop(0, w.height, hot=True) as lines:
        given = f.at(image, lines.index * line, "i8")
        to = f.at(f.at(room, before, "i8"), lines.index * (plane.line * size), "i8")
        if plane.has_bytes:
            f.copy(given, to, line, aligned=False)
        else:
            f.call(widen(code, line), given, to)
