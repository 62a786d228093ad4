"""Floats as whole steps, clamp(round(x / step)), to the bit and without a division.

1 / step is the sum of two floats, `inverse` and `tail`. x · inverse + x · tail, of which the sum
and the first product are rounded once together, is hardly ever anything but the quotient, rounded
correctly; and it grows with x. So it is enough to look at the numbers at which the integer
changes, of which there are as many as integers: `Steps.of` does, and moves `tail` by its last bit
until all is right.

The bounds are on x, and finite, so that nothing overflows. Bounds of what comes before, such as a
relu, can be taken together with those of the integers, because rounding never changes an order.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from fewbit.kernels.emit import Function, Value
from fewbit.numerics.widths import Width
from fewbit.toolchain.isa import VNNI, Isa

TO_INTEGER = 1.5 * 2.0**23
"""Added to a small float, it leaves the float rounded half to even in the low bits."""
_NEAR = 4
"""Floats on both sides of a change of the integer that are looked at."""
_TRIES = (0, 1, -1, 2, -2, 3, -3)


@dataclass(frozen=True)
class Steps:
    """What a kernel has to know of a step and of the integers that count it."""

    step: float
    inverse: float
    tail: float
    low: float
    high: float

    @staticmethod
    def of(
        step: float, width: Width, low: float | None = None, high: float | None = None
    ) -> Steps | None:
        """Steps of a size, of floats within bounds; None where only a division is exact."""
        if width.is_binary:
            return None
        size = np.float32(step)
        inverse, tail = _inverse(float(size), width.qmin, width.qmax)
        if inverse == 0:
            return None
        ends = [float(size * np.float32(end)) for end in (width.qmin, width.qmax)]
        bounds = (-inf if low is None else low, inf if high is None else high)
        first, last = (min(max(bound, ends[0]), ends[1]) for bound in bounds)
        return Steps(float(size), inverse, tail, first, last)

    def numbers(self) -> NDArray[np.float32]:
        """Return them as kernels read them."""
        return np.array(astuple(self), np.float32)


@cache
def _inverse(step: float, lowest: int, highest: int) -> tuple[float, float]:
    """1 / step as a sum of two floats that is exact where it matters; zeros if there is none."""
    size = np.float32(step)
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / size
        tiny, largest = np.finfo(np.float32).smallest_normal, size * np.float32(-lowest)
        if not (inverse >= tiny and size >= tiny and np.isfinite(largest)):
            return 0.0, 0.0
        exact = np.float32((1 - np.float64(inverse) * size) / size)
        x = _changes(size, lowest, highest)
        wanted = np.rint(x / size)
        for away in _TRIES:
            tail = _move(exact, away)
            if np.array_equal(np.rint(_quotient(x, inverse, tail)), wanted):
                return float(inverse), float(tail)
    return 0.0, 0.0


def _changes(size: np.float32, lowest: int, highest: int) -> NDArray[np.float32]:
    """The floats around all places where the integer changes."""
    between = np.arange(lowest, highest, dtype=np.float64) + 0.5
    places = (between * size).astype(np.float32)
    bits = places.view(np.int32)[:, None] + np.arange(-_NEAR, _NEAR + 1, dtype=np.int32)
    return bits.view(np.float32)


def _move(value: np.float32, away: int) -> np.float32:
    return (value.view(np.int32) + np.int32(away)).view(np.float32)


def _quotient(x: NDArray[np.float32], inverse: np.float32, tail: np.float32) -> NDArray[np.float32]:
    """x · inverse + (x · tail, rounded), rounded once, as a fused multiplication and addition."""
    a = x.astype(np.float64) * np.float64(inverse)
    b = (x * tail).astype(np.float64)
    total = a + b
    lost = (a - (total - (total - a))) + (b - (total - a))
    # A sum that is not exact is made odd: rounded once more, it goes where the exact one would.
    bits = total.view(np.int64)
    even = (lost != 0) & (bits & 1 == 0)
    towards = np.where((lost > 0) == (total > 0), 1, -1)
    return (bits + np.where(even, towards, 0)).view(np.float64).astype(np.float32)


@dataclass(frozen=True)
class Rounding:
    """`Steps` in registers."""

    step: Value
    inverse: Value
    tail: Value
    low: Value
    high: Value

    @staticmethod
    def load(f: Function, steps: Value) -> Rounding:
        return Rounding(*(f.broadcast(f.load("float", steps, i)) for i in range(5)))

    def quotient(self, f: Function, x: Value, positive: bool = False) -> Value:
        """x / step, within bounds; if it is `positive`, the lower bound is left to what follows."""
        bounded = f.at_most(x, self.high) if positive else f.clamp(x, self.low, self.high)
        if f.isa.fma:
            return f.multiply_add(bounded, self.inverse, bounded * self.tail)
        return bounded / self.step

    def bytes_of(self, f: Function, x: Value) -> Value:
        """A vector of floats as a vector of bytes."""
        moved = self.quotient(f, x) + f.broadcast(f.number(TO_INTEGER))
        return f.convert("trunc", f.bits(moved, f"<{f.isa.lanes} x i32>"), "i8")

    def store(
        self, f: Function, x: list[Value], to: Value, mask: Value | None, positive: bool = False
    ) -> None:
        """Vectors of floats that follow each other; one, where there is a mask.

        Bytes are `positive` if the lower bound is 0.
        """
        if mask is None and packs(f.isa):
            packed = _pack_bytes(f, [self.quotient(f, each, positive) for each in x], positive)
            first = [int(i < len(x) * f.isa.lanes) for i in range(_PACKED)]
            f.store_part(packed, to, f.constants("i1", first) if len(x) < 4 else None)
            return
        for i, each in enumerate(x):
            f.store_part(self.bytes_of(f, each), f.at(to, i * f.isa.lanes, "i8"), mask)


def packs(isa: Isa) -> bool:
    """Return whether up to four vectors of floats become one vector of bytes at once."""
    return isa.dot == VNNI and isa.vector_bits == 512


_PACKED = 64


def _pack_bytes(f: Function, x: list[Value], positive: bool) -> Value:
    """Four vectors as bytes: in each quarter of a register, first four numbers of each of them.

    The last packing makes bytes of words, signed ones or unsigned ones: then it bounds by 0.
    """
    none, all_, by_mode = f.zero("<16 x i32>"), f.constant("i16", -1), f.constant("i32", 4)
    call = f.processor_call
    whole = [call("x86.avx512.mask.cvtps2dq.512", none.type, v, none, all_, by_mode) for v in x]
    whole += [none] * (4 - len(whole))
    pairs = [call("x86.avx512.packssdw.512", "<32 x i16>", *whole[i : i + 2]) for i in (0, 2)]
    last = "packuswb" if positive else "packsswb"
    mixed = f.bits(call(f"x86.avx512.{last}.512", "<64 x i8>", *pairs), none.type)
    return f.bits(f.shuffle(mixed, [4 * (i % 4) + i // 4 for i in range(16)]), "<64 x i8>")
