"""Weights of fewer than 8 bits: how steps of a sum share bytes.

A weight is stored as an unsigned number of its width. Its bits are cut into planes of 4, 2 and 1
bits, lowest first: 3 bits are a plane of 2 and one of 1. In a plane, a byte holds a field of each
of a few successive steps, so that a load, a shift and a mask give one step of all columns, and the
same load serves the next steps. A *run* is as many steps as fill the bytes of all planes: 2 steps
of 4 bits, 4 of 2 or 6 bits, 8 of any odd width.

A number u stands for the weight u - bias. One bit stands for -1 and 1: it is taken as 0 and 2, so
its bias is 1. What fills up a step, a run or a vector is u = 0: it adds nothing to a sum, from
which `offsets` takes the bias times the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import UnsupportedError, WidthError
from fewbit.kernels.emit import Function, Value
from fewbit.kernels.kernel import Bytes
from fewbit.llvm.types import I8, I16, I64, Vector
from fewbit.toolchain.isa import Isa

PLANES = (8, 4, 2, 1)


def takes_unsigned(isa: Isa, bits: int) -> bool:
    """Return whether rows without negative numbers are worth a kernel of their own."""
    return isa.dot.unsigned_weights and bits == 8


@dataclass(frozen=True)
class Fields:
    """The layout of weights of so many bits."""

    isa: Isa
    bits: int = 8
    unsigned: bool = False
    """Whether rows are known to hold no negative number: then they are the unsigned factors."""

    def __post_init__(self) -> None:
        if self.bits not in range(1, 9):
            raise WidthError(
                f"no panel holds weights of {self.bits} bits", hint="1 to 8; ternary ones have 2"
            )
        if self.unsigned and not takes_unsigned(self.isa, self.bits):
            raise UnsupportedError(
                "unsigned rows need a dot product of unsigned bytes, and weights of 8 bits",
                hint="take them as signed ones",
            )

    @property
    def name(self) -> str:
        """What the names of functions say of it."""
        return "u8" if self.unsigned else "i8" if self.bits == 8 else f"i8w{self.bits}"

    @property
    def planes(self) -> tuple[int, ...]:
        return tuple(p for p in PLANES if self.bits & p)

    @property
    def run(self) -> int:
        """Steps that share bytes."""
        return 8 // self.planes[-1]

    @property
    def run_vectors(self) -> int:
        """Vectors that hold a run."""
        return self.run * self.bits // 8

    @property
    def unit(self) -> int:
        """Numbers of a row in a run."""
        return self.run * self.isa.step

    @property
    def bias(self) -> int:
        if self.bits == 8:
            return 128 if self.isa.dot.unsigned_weights and not self.unsigned else 0
        return max(1, 1 << self.bits >> 1)

    @property
    def lift(self) -> int:
        """Places by which a number stands for more than it is stored as."""
        return 1 if self.bits == 1 else 0

    def runs(self, depth: int) -> int:
        return -(-depth // self.unit)

    # At compile time

    def number(self, weight: Bytes) -> NDArray[np.uint8]:
        """Weights as what is stored of them."""
        self._check(weight)
        moved = weight.view(np.uint8) + np.uint8(self.bias)
        return moved >> np.uint8(self.lift)

    def weight(self, number: NDArray[np.uint8]) -> Bytes:
        return ((number << np.uint8(self.lift)) - np.uint8(self.bias)).view(np.int8)

    def join(self, steps: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Steps [..., run, cells] in the bytes that they share, [..., stored, cells]."""
        if self.bits == 8:
            return steps
        parts: list[NDArray[Any]] = []
        low = 0
        for plane in self.planes:
            fields = (steps >> low) & ((1 << plane) - 1)
            each = 8 // plane
            fields = fields.reshape(*steps.shape[:-2], self.run // each, each, steps.shape[-1])
            places = np.arange(0, 8, plane, dtype=np.uint8)[:, None]
            parts.append(np.bitwise_or.reduce(fields << places, axis=-2))
            low += plane
        return np.concatenate(parts, -2)

    def part(self, stored: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Take apart what `join` has joined."""
        steps: list[NDArray[Any]] = []
        for s in range(self.run):
            fields = [
                (stored[..., at, :] >> place & (1 << plane) - 1) << low
                for plane, low, at, place in self._places(s)
            ]
            steps.append(np.bitwise_or.reduce(fields))
        return np.stack(steps, -2).astype(np.uint8)

    def _places(self, step: int) -> list[tuple[int, int, int, int]]:
        """Return each plane's bits, the lowest of them, and a step's vector and place in a byte."""
        places: list[tuple[int, int, int, int]] = []
        low = first = 0
        for plane in self.planes:
            each = 8 // plane
            places.append((plane, low, first + step // each, step % each * plane))
            low, first = low + plane, first + self.run // each
        return places

    def _check(self, weight: Bytes) -> None:
        least, most = (
            (-1, 1) if self.bits == 1 else (-1 << (self.bits - 1), (1 << self.bits - 1) - 1)
        )
        fits = weight.size == 0 or (least <= weight.min() and weight.max() <= most)
        if not fits or (self.bits == 1 and not weight.all()):
            raise WidthError(
                f"the weights do not fit {self.bits} bits",
                hint="-1 and 1" if self.bits == 1 else f"{least} to {most}",
            )

    # In a kernel

    def take(self, f: Function, stored: Sequence[Value], step: int) -> Value:
        """One step of a run, a number in each byte."""
        if self.bits == 8:
            return stored[0]
        total: Value | None = None
        for plane, low, at, place in self._places(step):
            field = _field(f, stored[at], plane, place, low + self.lift)
            total = field if total is None else total | field
        assert total is not None
        return total


def _field(f: Function, packed: Value, plane: int, place: int, low: int) -> Value:
    """The field at `place` in each byte, at `low`, and zeros beside it."""
    mask = ((1 << plane) - 1) << low
    if "+gfni" in f.isa.features and packed.type in _GFNI:
        # Bit i of a result is what row 7 - i of a matrix picks, so one instruction is both.
        rows = (1 << (7 - row - low + place) if mask >> (7 - row) & 1 else 0 for row in range(8))
        name, words = _GFNI[packed.type]
        matrix = f.constant(words, sum(r << 8 * i for i, r in enumerate(rows)))
        none = f.constant("i8", 0)
        return f.processor_call(name, packed.type, packed, f.bits(matrix, packed.type), none)
    return _shift(f, packed, place - low) & f.constant(packed.type, mask)


_GFNI = {
    Vector(32, I8): ("x86.vgf2p8affineqb.256", Vector(4, I64)),
    Vector(64, I8): ("x86.vgf2p8affineqb.512", Vector(8, I64)),
}


def _shift(f: Function, packed: Value, right: int) -> Value:
    """Shift in 16 bits, as processors can; bits from the other byte are masked by the caller."""
    if right == 0:
        return packed
    assert isinstance(packed.type, Vector)
    count = packed.type.lanes
    halves = f.bits(packed, Vector(count // 2, I16) if count > 1 else packed.type)
    moved = halves.shift_right(right) if right > 0 else halves.shift_left(-right)
    return f.bits(moved, packed.type)
