"""Convolution: windows of an image as rows of a matmul, some at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fewbit.kernels.emit import Function, Value
from fewbit.targets.vexii.kernels.matmul import Code, Matmul, copy, fill
from fewbit.targets.vexii.kernels.pack import CHUNK_BYTES, pack_rows
from fewbit.targets.vexii.layout import Layout


@dataclass(frozen=True)
class Windows:
    """A convolution of N x H x W x C; sizes are in elements."""

    channels: int
    """Channels of the image."""
    outputs: int
    size: tuple[int, int]
    stride: tuple[int, int]
    start: tuple[int, int]
    """Rows and columns of padding before the image."""
    end: tuple[int, int]
    """Those behind it."""
    dilation: tuple[int, int]
    groups: int
    pixels: int | None
    """Windows of an image, where their number is known."""
    out_width: int | None

    @property
    def is_padded(self) -> bool:
        return any((*self.start, *self.end))

    @property
    def depth(self) -> int:
        """Elements of a window."""
        return self.channels // self.groups * self.size[0] * self.size[1]

    @property
    def name(self) -> str:
        numbers = (
            *(self.channels, self.outputs, *self.size, *self.stride, *self.start, *self.end),
            *(*self.dilation, self.groups, self.pixels or 0, self.out_width or 0),
        )
        return "_".join(map(str, numbers))


def packs_image(layout: Layout, windows: Windows) -> bool:
    """Return whether pixels are packed before windows are gathered."""
    bits = windows.channels * layout.act
    is_whole = windows.groups == 1 and bits % (8 * CHUNK_BYTES) == 0
    return is_whole and layout.act < 8 and windows.pixels is not None


def conv2d(code: Code, layout: Layout, windows: Windows) -> tuple[Function, int]:
    """Return the convolution, and the bytes of room that it needs.

    Its parameters are the images, panels of weights, sums, room, how many images there are, and
    their height and width.
    """
    f = Function(
        code.processor.isa,
        f"conv2d_a{layout.act}w{layout.weight}_{windows.name}",
        "ptr x, ptr weight, ptr y, ptr panel, index n, index h, index w",
    )
    x, weight, y, panel, n, h, w = f.parameters
    oh, ow = counts(windows, h, w)
    is_packed = packs_image(layout, windows)
    each = windows.outputs // windows.groups
    whole = _Gathered(code, layout, windows.depth, each, windows.outputs, is_packed)
    row = f.at(panel, whole.panel_bytes, "i8")
    row_bytes = whole.gathered_bytes
    fill(f, row, row_bytes)
    room = whole.panel_bytes + row_bytes
    seen = windows
    if is_packed:
        assert windows.pixels is not None
        seen = replace(windows, channels=windows.channels * layout.act // 8)
    gather = code.add(_gather(f, seen))
    with f.loop(0, n) as over_images:
        image = f.at(x, over_images.index * h * w * windows.channels, "i8")
        if is_packed:
            pack = code.add(pack_rows(f.isa, layout.act, 1))
            packed = f.at(panel, room, "i8")
            chunks = (windows.pixels or 0) * seen.channels // CHUNK_BYTES
            f.call(pack, image, packed, chunks, CHUNK_BYTES)
            image = packed
        with f.loop(0, windows.groups) as over_groups:
            group = over_groups.index
            part = f.at(image, group * (seen.channels // windows.groups), "i8")
            panels = f.at(weight, group * _panels_bytes(layout, windows.depth, each), "i8")
            with f.loop(0, oh) as over_rows, f.loop(0, ow, layout.rows) as over_pixels:
                count = f.smaller(ow - over_pixels.index, layout.rows)
                top = over_rows.index * windows.stride[0] - windows.start[0]
                with f.loop(0, count) as over:
                    left = (over_pixels.index + over.index) * windows.stride[1] - windows.start[1]
                    f.call(gather, part, row, h, w, top, left)
                    whole.pack_row(f, row, panel, over.index, count)
                place = (over_images.index * oh + over_rows.index) * ow + over_pixels.index
                sums = f.at(y, place * windows.outputs + group * each, "i32")
                choices = whole.rows(windows.out_width)
                whole.multiply(f, panel, panels, sums, count, choices)
    pixels = (windows.pixels or 0) * seen.channels if is_packed else 0
    return code.add(f), room + pixels


def counts(windows: Windows, h: Value, w: Value) -> list[Value]:
    """Return windows that an image has along its height and width."""
    fields = (windows.size, windows.stride, windows.start, windows.end, windows.dilation)
    sides = zip(*fields, strict=True)
    return [
        (length + (before + after - dilation * (size - 1) - 1)) // stride + 1
        for length, (size, stride, before, after, dilation) in zip((h, w), sides, strict=True)
    ]


@dataclass(frozen=True)
class _Gathered(Matmul):
    is_packed: bool = False

    @property
    def gathered_bytes(self) -> int:
        """The bytes of a window with its padding."""
        depth = self.layout.depth(self.k)
        return depth * self.layout.act // 8 if self.is_packed else depth

    def pack_row(self, f: Function, row: Value, panel: Value, number: Value, rows: Value) -> None:
        if not self.is_packed:
            super().pack_row(f, row, panel, number, rows)
            return
        layout, chunk = self.layout, self.layout.act_chunks * CHUNK_BYTES
        pack = self.code.add(pack_rows(f.isa, 8, layout.act_chunks))
        f.call(pack, row, f.at(panel, number * chunk, "i8"), layout.steps(self.k), rows * chunk)


def _panels_bytes(layout: Layout, k: int, n: int) -> int:
    """Return the bytes of all panels of the weights of a group."""
    return layout.panel_bytes(k, n)


def _gather(f: Function, windows: Windows) -> Function:
    """Return the bytes under a window at (top, left) as a row; zeros for what is outside."""
    parameters = "ptr x, ptr row, index h, index w, index top, index left"
    g = Function(f.isa, f"gather_{windows.name}", parameters)
    x, row, h, w, top, left = g.parameters
    each = windows.channels // windows.groups
    (kh, kw), (down, right) = windows.size, windows.dilation
    is_contiguous = windows.groups == 1 and right == 1
    aligned = each % CHUNK_BYTES == 0

    def at(y: Value, across: Value) -> Value:
        return g.at(x, (y * w + across) * windows.channels, "i8")

    def whole() -> None:
        with g.loop(0, kh) as over_rows:
            line = top + over_rows.index * down
            to = g.at(row, over_rows.index * (kw * each), "i8")
            if is_contiguous:
                copy(g, at(line, left), to, kw * each, aligned=aligned)
                return
            with g.loop(0, kw) as over:
                place = _advance(g, to, over.index, each)
                copy(g, at(line, left + over.index * right), place, each, aligned=aligned)

    if not windows.is_padded:
        whole()
        return g
    is_inside = (
        (top >= 0)
        & (top + (kh - 1) * down < h)
        & (left >= 0)
        & (left + (kw - 1) * right < w)
    )  # fmt: skip
    with g.when(is_inside):
        whole()
    with g.when(is_inside ^ True), g.loop(0, kh) as over_rows:
        line = top + over_rows.index * down
        to_line = g.at(row, over_rows.index * (kw * each), "i8")
        with g.loop(0, kw) as over:
            across = left + over.index * right
            to = _advance(g, to_line, over.index, each)
            seen = line.inside(h) & across.inside(w)
            with g.when(seen):
                copy(g, at(line, across), to, each, aligned=aligned)
            with g.when(seen ^ True):
                _zeros(g, to, each)
    return g


def _advance(f: Function, pointer: Value, index: Value, step: int) -> Value:
    return f.at(pointer, index * step, "i8")


def _zeros(f: Function, to: Value, count: int) -> None:
    if count % CHUNK_BYTES == 0:
        fill(f, to, count)
        return
    with f.loop(0, count) as loop:
        f.store(f.constant("i8", 0), to, loop.index)
