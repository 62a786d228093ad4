"""What becomes of an accumulator: of each channel, in the kernel that has it in a register.

| kind | is stored |
|---|---|
| `sums` | acc + bias, in i32 |
| `channels` | one sum for each channel, of what a chain of operations makes of acc + bias, in i32 |
| `fixed` | clamp(round((acc + bias) · multiplier / 2^shift)), in integers |
| `scaled` | clamp(round(f32(acc + bias) · multiplier)) |
| `floats` | f32(acc) · x_scale · w_scale + bias + add, clamped: floats, and them in whole steps |

The operations are those of docs/numerics.md, in that order; bounds of floats that only become
integers are bounds of these, because rounding is monotone. What differs by channel is in a table of
words, `columns` of them for each channel.

A fixed-point product is rounded by its upper word: the lower one only says whether there is
anything behind it, which becomes the lowest bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fewbit.llvm.types import F32, I32, I64
from fewbit.llvm.values import Value
from fewbit.targets.mcu.kernels.function import Kernel, name_of

if TYPE_CHECKING:
    from fewbit.targets.mcu.chain import Chain

Kind = Literal["sums", "channels", "fixed", "scaled", "floats"]
Array = np.ndarray[Any, Any]
UPPER = 32
"""Bits of a product's lower word."""


@dataclass(frozen=True)
class Epilogue:
    """How outputs are made; what is None is not there."""

    kind: Kind
    has_bias: bool = False
    shift: int | None = None
    """The shift of all channels, if they have one."""
    raised: int = 0
    """Bits by which accumulators are raised, so that there are some to round by."""
    chain: Chain | None = None
    """What is done to accumulators before they are added up."""
    bounds: tuple[int, int] = (-128, 127)
    """Bounds of integers that are stored."""
    float_bounds: tuple[float | None, float | None] = (None, None)
    """Bounds of floats that are stored."""
    has_add: bool = False
    gives_floats: bool = False
    step: float | None = None
    """What floats are rounded to whole steps of."""
    is_binary: bool = False
    """Whether the integers are signs."""

    @property
    def name(self) -> str:
        parts: list[object] = [self.kind]
        if self.has_bias:
            parts.append("b")
        if self.kind == "fixed":
            parts += ["v" if self.shift is None else self.shift, f"u{self.raised}"]
        if self.chain is not None:
            return name_of(*parts, self.chain.name)
        if self.kind == "floats":
            marks = zip("afs", (self.has_add, self.gives_floats, self.is_binary), strict=True)
            parts += [mark for mark, is_so in marks if is_so]
            parts += [_hexadecimal(x) for x in (*self.float_bounds, self.step)]
        if self.kind != "sums":
            parts += [str(bound).replace("-", "m") for bound in self.bounds]
        return name_of(*parts)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The words of a channel in the table, in their order."""
        names: list[str] = []
        if self.kind == "fixed":
            names += ["multiplier"] + (["shift"] if self.shift is None else [])
        if self.kind in ("scaled", "floats"):
            names.append("scale")
        if self.chain is not None:
            names += [name for name, _ in self.chain.columns]
        if self.has_bias:
            names.append("bias")
        return tuple(names)

    def table(self, columns: dict[str, Array], channels: int) -> Array:
        """Return the table as bytes."""
        words = np.zeros((channels, max(len(self.fields), 1)), np.uint32)
        for place, name in enumerate(self.fields):
            given = np.broadcast_to(np.asarray(columns[name]), (channels,))
            words[:, place] = np.ascontiguousarray(given).view(np.uint32)
        return words.reshape(-1).view(np.int8)

    @property
    def gives_integers(self) -> bool:
        if self.kind == "floats":
            return self.step is not None
        return self.kind in ("fixed", "scaled")

    # Code

    def channel(self, f: Kernel, table: Value, channel: Value) -> dict[str, Value]:
        """Load what the table has of a channel."""
        if not self.fields:
            return {}
        row = f.at(table, channel * (4 * len(self.fields)), "i8")
        is_float = self.kind == "floats"
        return {
            name: f.load(
                F32 if name == "scale" or (is_float and name == "bias") else I32,
                row,
                place,
                align=4,
            )
            for place, name in enumerate(self.fields)
        }

    def integers_of(self, f: Kernel, acc: Value, given: dict[str, Value]) -> Value:
        """Return the integer of an accumulator, of the kinds that scale by one number."""
        total = acc + given["bias"] if self.has_bias else acc
        if self.kind == "sums":
            return total
        if self.chain is not None:
            return self.chain.apply(f, total, given)
        if self.kind == "scaled":
            return f.bounded(
                f.round_to_integer(f.convert("sitofp", total, F32) * given["scale"]), *self.bounds
            )
        total = total.shift_left(self.raised) if self.raised else total
        product = f.convert("sext", total, I64) * f.convert("sext", given["multiplier"], I64)
        return f.bounded(self._shift_product(f, product, given), *self.bounds)

    def floats_of(
        self, f: Kernel, acc: Value, given: dict[str, Value], x_scale: Value, add: Value | None
    ) -> tuple[Value | None, Value | None]:
        """Return the float of an accumulator, and its integer, as far as they are stored."""
        value = f.convert("sitofp", acc, F32) * x_scale * given["scale"]
        if self.has_bias:
            value = value + given["bias"]
        if add is not None:
            value = value + add
        if self.gives_floats or self.is_binary:
            low, high = self.float_bounds
            if low is not None:
                value = f.select(value < f.number(low), f.number(low), value)
            if high is not None:
                value = f.select(value > f.number(high), f.number(high), value)
        if self.step is None:
            return value, None
        if self.is_binary:
            steps = f.select(value >= f.number(0.0), f.integer(1), f.integer(-1))
        else:
            steps = f.bounded(f.round_to_integer(value / f.number(self.step)), *self.bounds)
        return value if self.gives_floats else None, steps

    def _shift_product(self, f: Kernel, product: Value, given: dict[str, Value]) -> Value:
        """Return a product of 64 bits over a power of two, rounded half to even."""
        shift = f.integer(self.shift) if self.shift is not None else given["shift"]
        down = shift - UPPER
        upper = f.convert("trunc", product.shift_right_signed(f.constant(I64, UPPER)), I32)
        rest = f.convert("trunc", product, I32)
        upper = upper | f.convert("zext", rest.differs(0), I32)
        odd = upper.shift_right(down) & 1
        half = f.integer(1).shift_left(down - 1) - 1
        return (upper + half + odd).shift_right_signed(down)


def common_shift(multiplier: Array, shift: Array) -> tuple[Array, Array, int | None]:
    """Return multipliers and shifts of equal value, and the shift of all, if they can share one.

    A float32 has 24 significant bits, so the lowest of its 31 are zeros, which can be given up.
    """
    wide, least = multiplier.astype(np.int64), int(shift.min())
    down = shift.astype(np.int64) - least
    is_exact = (down < 31) & (wide % (np.int64(1) << np.minimum(down, 31)) == 0)
    if not is_exact.all():
        return multiplier, shift, None
    return (wide >> down).astype(np.int32), np.full_like(shift, least), least


def missing_bits(shift: Array) -> int:
    """Return bits that accumulators must be raised by: two of an upper word are rounded away."""
    return max(0, UPPER + 2 - int(shift.min()))


def integer_bounds(
    bounds: Sequence[float | None], step: float, least: int, most: int
) -> tuple[int, int]:
    """Return the integers between which a clamped float, in whole steps, lies."""
    low, high = bounds
    whole = [
        end if value is None else int(np.clip(_in_steps(value, step), least, most))
        for value, end in ((low, least), (high, most))
    ]
    return whole[0], whole[1]


def _in_steps(value: float, step: float) -> float:
    return float(np.rint(np.float32(value) / np.float32(step)))


def _hexadecimal(value: float | None) -> str:
    return "n" if value is None else format(int(np.float32(value).view(np.uint32)), "x")
