"""Depthwise convolution with vectors: eight channels at once, two taps of a window by one `dot`.

Lines are those of microcontrollers: copied with their padding where windows reach beyond the image.
Neighbouring channels of two taps are interleaved, so that each lane adds up a channel's products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.llvm.types import I8, I16, Vector
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.depthwise import Depthwise, DepthwiseWriter
from fewbit.targets.mcu.kernels.function import Code, Kernel, name_of
from fewbit.targets.wasm.kernels.lanes import WORDS, load_channels, store_outputs

Array = np.ndarray[Any, Any]
AT_ONCE = 8
LOW, HIGH = ([half + i // 2 + i % 2 * AT_ONCE for i in range(AT_ONCE)] for half in (0, 4))
MOST_TAPS = 49


@dataclass(frozen=True)
class VectorDepthwise(Depthwise):
    """A depthwise convolution of eight channels or more."""

    @property
    def name(self) -> str:
        return name_of("vectors", super().name)

    @property
    def pairs(self) -> int:
        return -(-self.taps // 2)

    @property
    def starts(self) -> list[int]:
        """The first channel of each group."""
        count = self.windows.channels
        return [min(first, count - AT_ONCE) for first in range(0, count, AT_ONCE)]

    def pack(self, weight: Array) -> Array:
        """Return weights, C x 1 x kh x kw, as bytes: groups of channels, two taps side by side."""
        taps = np.zeros((len(weight), 2 * self.pairs), np.int8)
        taps[:, : self.taps] = weight.reshape(len(weight), -1)
        pairs = taps.reshape(len(weight), self.pairs, 2)
        groups = [pairs[s : s + AT_ONCE].transpose(1, 0, 2) for s in self.starts]
        return np.ascontiguousarray(np.stack(groups)).reshape(-1)


def depthwise(code: Code, wanted: VectorDepthwise) -> tuple[Kernel, int]:
    """Return the function of a layer, and the bytes of room that it needs."""
    found = code.find(wanted.name) or code.add(_Writer(code, wanted).write())
    return found, wanted.room_bytes


class _Writer(DepthwiseWriter):
    wanted: VectorDepthwise

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
        with f.loop(0, w.channels, AT_ONCE, carried=[weight], hot=True) as groups:
            (taps,) = groups.carried
            channel = groups.index
            if w.channels % AT_ONCE:
                channel = f.smaller(channel, w.channels - AT_ONCE)
            weights = [self._weights(f, taps, pair) for pair in range(wanted.pairs)]
            with f.loop(0, w.out[1], carried=[f.at(x, channel, "i8"), channel], hot=True) as over:
                at, place = over.carried
                # Loaded for each pixel: factors that are widened before the loop are multiplied
                # as 64 bits, which engines do by many instructions.
                given = load_channels(f, epilogue, table, w.channels, channel, 2)
                store_outputs(f, epilogue, self._sums(f, at, weights), given, scale, place)
                over.carry(f.at(at, step, "i8"), place + w.channels)
            groups.carry(f.at(taps, wanted.pairs * 2 * AT_ONCE, "i8"))
        return self.code.add(f)

    def _weights(self, f: Kernel, taps: Value, pair: int) -> list[Value]:
        """Load the weights of two taps, as pairs."""
        return [
            self._load_wide(f, f.at(taps, (2 * pair + half) * AT_ONCE, "i8")) for half in range(2)
        ]

    def _sums(self, f: Kernel, x: Value, weights: list[list[Value]]) -> list[Value]:
        sums = [f.zero(WORDS)] * 2
        last = self.wanted.taps - 1
        for pair, some in enumerate(weights):
            # Behind the last tap are weights of 0.
            first, second = (self._load_tap(f, x, min(2 * pair + i, last)) for i in range(2))
            for half, order in enumerate((LOW, HIGH)):
                values = f.shuffle(first, order, second)
                sums[half] = sums[half] + f.intrinsic("wasm.dot", WORDS, values, some[half])
        return sums

    def _load_tap(self, f: Kernel, x: Value, tap: int) -> Value:
        w = self.w
        ky, kx = divmod(tap, w.size[1])
        offset = ky * self.wanted.line_bytes + kx * w.dilation[1] * w.channels
        return self._load_wide(f, f.at(x, offset, "i8"))

    def _load_wide(self, f: Kernel, at: Value) -> Value:
        return f.convert("sext", f.load(Vector(AT_ONCE, I8), at, align=1), I16)
