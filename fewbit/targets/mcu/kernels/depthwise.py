"""Depthwise convolution: each channel by itself, channels-last.

Where windows reach beyond the image, the lines that a row of outputs needs are copied first, with
their padding, so that every window lies whole in memory and its taps have fixed places. Where
they are whole words, channels are taken four at a time: as pairs by `smlabb` and `smlatt` on cores
that have these, as lanes on Helium. Weights are bytes whatever their width, because there are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.llvm.types import I8, I32, Vector
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.contraction import Windows
from fewbit.targets.mcu.kernels.epilogue import Epilogue
from fewbit.targets.mcu.kernels.function import Code, Kernel, name_of
from fewbit.targets.mcu.kernels.tile import pairs_of, store_output

Array = np.ndarray[Any, Any]
MOST_UNROLLED = 25
"""Taps of a window whose code is written out."""
FOUR = 4


@dataclass(frozen=True)
class Depthwise:
    images: int
    windows: Windows
    epilogue: Epilogue

    @property
    def name(self) -> str:
        return name_of("depthwise", self.images, self.windows.name, self.epilogue.name)

    @property
    def taps(self) -> int:
        return self.windows.size[0] * self.windows.size[1]

    @property
    def line_width(self) -> int:
        """Pixels of a line with its padding."""
        w = self.windows
        if not w.is_padded:
            return w.width
        return (w.out[1] - 1) * w.stride[1] + (w.size[1] - 1) * w.dilation[1] + 1

    @property
    def room_bytes(self) -> int:
        w = self.windows
        return w.size[0] * self.line_width * w.channels if w.is_padded else 0

    @property
    def line_bytes(self) -> int:
        """The bytes from one line of a window to the next."""
        w = self.windows
        return self.line_width * w.channels * (1 if w.is_padded else w.dilation[0])

    def pack(self, weight: Array) -> Array:
        """Return weights, C x 1 x kh x kw, as bytes, tap by tap."""
        return np.ascontiguousarray(weight[:, 0].transpose(1, 2, 0)).astype(np.int8).reshape(-1)


def depthwise(code: Code, wanted: Depthwise) -> tuple[Kernel, int]:
    """Return the function of a layer, and the bytes of room that it needs."""
    found = code.find(wanted.name) or code.add(DepthwiseWriter(code, wanted).write())
    return found, wanted.room_bytes


class DepthwiseWriter:
    """Writes the function of a layer, by one of a row of outputs."""

    def __init__(self, code: Code, wanted: Depthwise) -> None:
        self.code, self.wanted, self.w = code, wanted, wanted.windows
        in_fours = self.w.channels % FOUR == 0 and code.core.family != "plain"
        self.at_once = FOUR if in_fours else 1

    def write(self) -> Kernel:
        wanted, w = self.wanted, self.w
        f = Kernel(
            self.code.core,
            wanted.name,
            "ptr x, ptr weight, ptr table, ptr room, ptr x_scale, ptr add, ptr y, ptr q",
        )
        x, weight, table, room, x_scale, add, y, q = f.parameters
        line = w.width * w.channels
        if w.is_padded:
            f.fill(room, wanted.room_bytes)
        outputs = w.out[1] * w.channels
        with f.loop(0, wanted.images, hot=True) as images:
            image = f.at(x, images.index * (w.height * line), "i8")
            scale = f.at(x_scale, images.index, "float")
            with f.loop(0, w.out[0], hot=True) as rows:
                top = rows.index * w.stride[0] - w.start[0]
                base = self._lines(f, image, room, top)
                place = (images.index * w.out[0] + rows.index) * outputs
                f.call(
                    self.row(), base, weight, table, scale,
                    f.at(add, place, "float"), f.at(y, place, "float"), f.at(q, place, "i8"),
                )  # fmt: skip
        return f

    def _lines(self, f: Kernel, image: Value, room: Value, top: Value) -> Value:
        """Return where the lines of a row's windows are; padded ones are copied."""
        w, wanted = self.w, self.wanted
        line = w.width * w.channels
        if not w.is_padded:
            return f.at(image, top * line, "i8")
        seen = min(w.width, wanted.line_width - w.start[1]) * w.channels
        aligned = seen % 4 == line % 4 == wanted.line_bytes % 4 == w.channels % 4 == 0
        with f.loop(0, w.size[0], hot=True) as lines:
            number = top + lines.index * w.dilation[0]
            to = f.at(room, lines.index * wanted.line_bytes + w.start[1] * w.channels, "i8")
            inside = number.inside(w.height)
            with f.when(inside):
                f.copy(f.at(image, number * line, "i8"), to, seen, aligned=aligned)
            with f.when(inside ^ True):
                if aligned:
                    f.fill(to, seen)
                else:
                    f.fill(to, f.integer(seen))
        return room

    def row(self) -> Kernel:
        """Return the function of a row of outputs."""
        wanted, w = self.wanted, self.w
        name = name_of("row", wanted.name)
        f = Kernel(
            self.code.core, name, "ptr x, ptr weight, ptr table, ptr x_scale, ptr add, ptr y, ptr q"
        )
        x, weight, table, x_scale, *_ = f.parameters
        epilogue = wanted.epilogue
        scale = f.load("float", x_scale, align=4) if epilogue.kind == "floats" else None
        step = w.stride[1] * w.channels
        with f.loop(0, w.channels, self.at_once, hot=True) as channels:
            channel = channels.index
            given = [epilogue.channel(f, table, channel + i) for i in range(self.at_once)]
            taps = f.at(weight, channel, "i8")
            with f.loop(0, w.out[1], carried=[f.at(x, channel, "i8"), channel], hot=True) as over:
                at, place = over.carried
                for i, acc in enumerate(self._accumulators(f, at, taps)):
                    store_output(f, epilogue, acc, given[i], scale, place + i)
                over.carry(f.at(at, step, "i8"), place + w.channels)
        return self.code.add(f)

    def _accumulators(self, f: Kernel, x: Value, weight: Value) -> list[Value]:
        """Return the sums of some neighbouring channels over the taps of a window."""
        w = self.w
        zeros = [f.integer(0)] * self.at_once
        if self.code.core.family == "mve" and self.at_once == FOUR:
            zeros = [f.zero(Vector(FOUR, I32))]
        across, down = w.dilation[1] * w.channels, self.wanted.line_bytes
        if self.wanted.taps <= MOST_UNROLLED:
            accs = zeros
            for tap in range(self.wanted.taps):
                ky, kx = divmod(tap, w.size[1])
                value = f.at(x, ky * down + kx * across, "i8")
                accs = self._tap(f, value, f.at(weight, tap * w.channels, "i8"), accs)
            return self._lanes(f, accs)
        with f.loop(0, w.size[0], carried=[x, weight, *zeros], hot=True) as lines:
            line, taps, *accs = lines.carried
            with f.loop(0, w.size[1], carried=[line, taps, *accs], hot=True) as over:
                value, tap, *accs = over.carried
                accs = self._tap(f, value, tap, accs)
                over.carry(f.at(value, across, "i8"), f.at(tap, w.channels, "i8"), *accs)
            _, taps, *accs = over.results
            lines.carry(f.at(line, down, "i8"), taps, *accs)
        return self._lanes(f, lines.results[2:])

    def _lanes(self, f: Kernel, accs: list[Value]) -> list[Value]:
        if isinstance(accs[0].type, Vector):
            return [f.extract(accs[0], i) for i in range(FOUR)]
        return accs

    def _tap(self, f: Kernel, x: Value, weight: Value, accs: list[Value]) -> list[Value]:
        family = self.code.core.family
        if self.at_once == 1:
            return [
                acc + f.signed(f.load("i8", x, i)) * f.signed(f.load("i8", weight, i))
                for i, acc in enumerate(accs)
            ]
        if family == "mve":
            four = Vector(FOUR, I8)
            values, taps = (f.convert("sext", f.load(four, p, align=1), I32) for p in (x, weight))
            return [accs[0] + values * taps]
        values, taps = pairs_of(f, f.word(x)), pairs_of(f, f.word(weight))
        sums = list(accs)
        for pair, (value, tap) in enumerate(zip(values, taps, strict=True)):
            for half, name in enumerate(("arm.smlabb", "arm.smlatt")):
                i = pair + 2 * half
                sums[i] = f.intrinsic(name, I32, value, tap, sums[i])
        f.settle(sums)
        return sums
