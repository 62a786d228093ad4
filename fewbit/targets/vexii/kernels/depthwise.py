"""Depthwise convolution: each channel by itself, with dot products along the rows of its plane.

A channel is first copied to a plane of bytes, with its padding. A word of it holds neighbouring
pixels. For an output that starts anywhere in a word there is a word of weights that has the taps at
these places, and zeros at others; so nothing is shifted when it runs. Where outputs start repeats
after a few of them, a *period*, which is what the inner loop computes. Operands are bytes whatever
their width: a row of a window has so few elements that narrower ones would save nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, ClassVar

import numpy as np

from fewbit.kernels.emit import Function
from fewbit.riscv.assembler import Assembler
from fewbit.targets.vexii.kernels.conv2d import Windows
from fewbit.targets.vexii.kernels.matmul import Code, fill
from fewbit.targets.vexii.kernels.registers import SAVED, TEMPORARY

Array = np.ndarray[Any, Any]
LARGEST_OFFSET = 2047


@dataclass(frozen=True)
class Depthwise:
    """The convolution of one channel's plane; all sizes are known."""

    parameters: ClassVar[str] = "ptr, ptr, ptr"
    """The plane, weights, and the sums of the channel."""

    windows: Windows
    height: int
    width: int
    xlen: int

    @property
    def symbol(self) -> str:
        return f"depthwise_{self.windows.name}_{self.height}x{self.width}"

    @property
    def word(self) -> int:
        """Bytes of a word, and elements in it."""
        return self.xlen // 8

    @property
    def period(self) -> int:
        """Outputs after which they start at the same place of a word again."""
        return self.word // gcd(self.windows.stride[1], self.word)

    @property
    def counts(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        w = self.windows
        rows, columns = (
            (length + before + after - dilation * (size - 1) - 1) // stride + 1
            for length, before, after, dilation, size, stride in zip(
                (self.height, self.width), w.start, w.end, w.dilation, w.size, w.stride, strict=True
            )
        )
        return rows, columns

    @property
    def line(self) -> int:
        """Bytes of a row of the plane: all words that its outputs read."""
        stride, reach = self.windows.stride[1], self.words_of(self.period - 1)[-1] + 1
        whole = -(-self.counts[1] // self.period) - 1
        padded = self.width + self.windows.start[1] + self.windows.end[1]
        needed = whole * self.period * stride + reach * self.word
        return -(-max(needed, padded) // self.word) * self.word

    @property
    def plane_bytes(self) -> int:
        return (self.height + self.windows.start[0] + self.windows.end[0]) * self.line

    def words_of(self, output: int) -> list[int]:
        """Return the words of a row, from the period's first on, in which an output has taps."""
        (_, kw), right = self.windows.size, self.windows.dilation[1]
        places = [output * self.windows.stride[1] + tap * right for tap in range(kw)]
        return sorted({place // self.word for place in places})

    @property
    def uses(self) -> list[tuple[int, int, int]]:
        """Row of the window, output of the period and word, in the order of dot products."""
        return [
            (row, output, word)
            for row in range(self.windows.size[0])
            for output in range(self.period)
            for word in self.words_of(output)
        ]

    def pack(self, weight: Array) -> Array:
        """Return weights, C x 1 x kh x kw, as words in the order in which they are used."""
        channels, (_, kw), right = len(weight), self.windows.size, self.windows.dilation[1]
        packed = np.zeros((channels, len(self.uses), self.word), np.int8)
        for number, (row, output, word) in enumerate(self.uses):
            for tap in range(kw):
                place = output * self.windows.stride[1] + tap * right
                if place // self.word == word:
                    packed[:, number, place % self.word] = weight[:, 0, row, tap]
        return packed.reshape(-1)

    def emit(self, assembler: Assembler) -> None:
        _Writer(self, assembler).write()


class _Writer:
    """Registers hold the sums of a period, the words of a row, and as many weights as fit."""

    def __init__(self, plane: Depthwise, assembler: Assembler) -> None:
        self.plane, self.a, self.word = plane, assembler, plane.word
        free = [*TEMPORARY, *SAVED]

        def take(count: int) -> list[str]:
            taken = free[:count]
            del free[:count]
            return taken

        words = max(plane.words_of(plane.period - 1)) + 1
        self.x, self.y, self.left, self.weights = take(4)
        self.sums, self.pixels = take(plane.period), take(words)
        self.products, self.loaded = take(2), take(1)[0]
        self.held = dict(zip(range(len(plane.uses)), take(len(plane.uses)), strict=False))
        self.saved = [register for register in SAVED if register not in free]

    def write(self) -> None:
        a, plane = self.a, self.plane
        rows, columns = plane.counts
        full, tail = divmod(columns, plane.period)
        channels, stride = plane.windows.channels, plane.windows.stride
        names = ["x", "weights", "y", "rows", *self.saved]
        self.slot = {name: i * self.word for i, name in enumerate(names)}
        frame = -(-len(names) * self.word // 16) * 16
        a.symbol(plane.symbol)
        a.addi("sp", "sp", -frame)
        for register in self.saved:
            self.keep(register, register)
        for number, name in enumerate(names[:3]):
            self.keep(f"a{number}", name)
        a.li("t0", rows)
        self.keep("t0", "rows")
        self.back(self.weights, "weights")
        for number, register in self.held.items():
            self.load(register, number * self.word, self.weights)
        line = a.label(a.fresh("line"))
        self.back(self.x, "x")
        self.back(self.y, "y")
        if full:
            a.li(self.left, full)
            again = a.label(a.fresh("period"))
            self.outputs(plane.period)
            a.addi(self.x, self.x, plane.period * stride[1])
            a.addi(self.left, self.left, -1)
            a.bnez(self.left, again)
        if tail:
            self.outputs(tail)
        self.back(self.x, "x")
        self.move(self.x, stride[0] * plane.line)
        self.keep(self.x, "x")
        self.back(self.y, "y")
        self.move(self.y, columns * channels * 4)
        self.keep(self.y, "y")
        self.back(self.left, "rows")
        a.addi(self.left, self.left, -1)
        self.keep(self.left, "rows")
        a.bnez(self.left, line)
        for register in self.saved:
            self.back(register, register)
        a.addi("sp", "sp", frame)
        a.ret()

    def outputs(self, count: int) -> None:
        """Compute and store the first outputs of a period; advance the pointer to them."""
        plane, a = self.plane, self.a
        started: set[int] = set()
        pending: list[tuple[str, str]] = []
        used = 0
        last_row = -1
        last_word = max(plane.words_of(count - 1))
        for number, (row, output, word) in enumerate(plane.uses):
            if output >= count:
                continue
            if row != last_row:
                last_row = row
                self.load_row(row, last_word + 1)
            weight = self.held.get(number)
            if weight is None:
                weight = self.loaded
                self.load(weight, number * self.word, self.weights)
            total = self.sums[output]
            if output not in started:
                started.add(output)
                a.dot8x8(total, self.pixels[word], weight)
                continue
            if len(pending) == len(self.products):
                self.add(pending.pop(0))
            product = self.products[used % len(self.products)]
            used += 1
            a.dot8x8(product, self.pixels[word], weight)
            pending.append((total, product))
        for each in pending:
            self.add(each)
        step = 4 * plane.windows.channels
        if count * step <= LARGEST_OFFSET:
            for output in range(count):
                a.sw(self.sums[output], output * step, self.y)
            a.addi(self.y, self.y, count * step)
            return
        for output in range(count):
            a.sw(self.sums[output], 0, self.y)
            self.move(self.y, step)

    def load_row(self, row: int, count: int) -> None:
        """Load words of a row of the plane."""
        offset = row * self.plane.windows.dilation[0] * self.plane.line
        base = self.x
        if offset + count * self.word > LARGEST_OFFSET:
            base = self.loaded
            self.a.li(base, offset)
            self.a.add(base, base, self.x)
            offset = 0
        for number in range(count):
            self.load(self.pixels[number], offset + number * self.word, base)

    def add(self, pending: tuple[str, str]) -> None:
        total, product = pending
        self.a.add(total, total, product)

    def move(self, register: str, distance: int) -> None:
        if distance <= LARGEST_OFFSET:
            self.a.addi(register, register, distance)
            return
        self.a.li(self.loaded, distance)
        self.a.add(register, register, self.loaded)

    def load(self, register: str, offset: int, base: str) -> None:
        if offset > LARGEST_OFFSET:
            self.a.li(register, offset)
            self.a.add(register, register, base)
            offset, base = 0, register
        self.a.emit("lw" if self.word == 4 else "ld", register, offset, base)

    def keep(self, register: str, name: str) -> None:
        self.a.emit("sw" if self.word == 4 else "sd", register, self.slot[name], "sp")

    def back(self, register: str, name: str) -> None:
        self.a.emit("lw" if self.word == 4 else "ld", register, self.slot[name], "sp")


def depthwise(code: Code, plane: Depthwise) -> tuple[Function, int]:
    """Return the convolution of all channels, and the bytes of room that it needs.

    Its parameters are those of `conv2d`.
    """
    windows, (height, width) = plane.windows, (plane.height, plane.width)
    f = Function(
        code.processor.isa,
        f"channels_{plane.symbol}",
        "ptr x, ptr weight, ptr y, ptr plane, index n, index h, index w",
    )
    x, weight, y, room, n, _, _ = f.parameters
    channels, line = windows.channels, plane.line
    rows, columns = plane.counts
    each = len(plane.uses) * plane.word
    fill(f, room, plane.plane_bytes)
    inside = f.at(room, windows.start[0] * line + windows.start[1], "i8")
    with f.loop(0, n) as over_images, f.loop(0, channels) as over:
        image = f.at(
            f.at(x, over_images.index * (height * width * channels), "i8"), over.index, "i8"
        )
        with f.loop(0, height) as over_rows:
            start = f.at(image, over_rows.index * (width * channels), "i8")
            to = f.at(inside, over_rows.index * line, "i8")
            with f.loop(0, width) as over_pixels:
                byte = f.load("i8", f.at(start, over_pixels.index * channels, "i8"))
                f.store(byte, to, over_pixels.index)
        place = over_images.index * (rows * columns * channels) + over.index
        weights = f.at(weight, over.index * each, "i8")
        f.call(code.prototype(plane), room, weights, f.at(y, place, "i32"))
    return code.add(f), plane.plane_bytes
