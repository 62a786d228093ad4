"""The nine bit widths: 1, 1.58 (ternary), and 2 to 8.

A width is a small value type rather than a number, because the number alone is a trap: ternary
lives in 2-bit fields yet is not 2 bits, and 1 and 1.58 collide as soon as someone writes
`int(bits)`. Widths compare, sort and hash by precision, so they can be keys of any cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from fewbit.errors import WidthError
from fewbit.numerics.arrays import IntArray

Mode = Literal["max", "mean"]
WeightMode = Literal["max", "mean", "mse", "signed-max", "offset"]
"""What a scale of 3 to 8 bits is taken from: max|x| or mean|x|."""

Granularity = Literal["tensor", "channel", "group"]
"""What shares one scale in a weight: everything, an output channel, a group along K."""

ScaleType = Literal["f32", "f16"]
"""What scales and offsets of a weight are numbers of; they are used as float32."""

ActivationGranularity = Literal["tensor", "row", "sample", "group"]
"""What shares one scale in an activation: everything, a last-dimension row, a sample."""

TERNARY = 1.58
_PRECISIONS = (1, TERNARY, 2, 3, 4, 5, 6, 7, 8)


@dataclass(frozen=True, order=True, slots=True, repr=False)
class Width:
    """One of the nine widths. `Width.of` makes one from what a user writes."""

    precision: float

    def __post_init__(self) -> None:
        if self.precision not in _PRECISIONS:
            raise _no_such_width(self.precision)

    @staticmethod
    def of(value: WidthLike) -> Width:
        """Return the width of a number (4, 1.58), a text ("4", "1.58", "ternary") or a width."""
        if isinstance(value, Width):
            return value
        width = _BY_NAME.get(value) if isinstance(value, str) else _by_number(value)
        if width is None:
            raise _no_such_width(value)
        return width

    @property
    def is_binary(self) -> bool:
        return self.precision == 1

    @property
    def is_ternary(self) -> bool:
        return self.precision == TERNARY

    @property
    def bits(self) -> int:
        """Storage bits of one value; ternary uses the 2-bit field."""
        return 2 if self.is_ternary else int(self.precision)

    @property
    def qmin(self) -> int:
        return -1 if self.bits == 1 or self.is_ternary else -(1 << (self.bits - 1))

    @property
    def qmax(self) -> int:
        return 1 if self.bits <= 2 else (1 << (self.bits - 1)) - 1

    @property
    def magnitude(self) -> int:
        """The largest |u|, which bounds accumulators."""
        return -self.qmin

    def holds(self, values: IntArray) -> bool:
        """Return whether every value is one of this width's (0 is not a value of 1 bit)."""
        if values.size == 0:
            return True
        in_range = int(values.min()) >= self.qmin and int(values.max()) <= self.qmax
        return in_range and (not self.is_binary or bool(values.all()))

    def __str__(self) -> str:
        return f"{self.precision:g}"

    def __repr__(self) -> str:
        return f"Width({self})"


WidthLike = Width | float | str | np.integer[Any]
"""What `Width.of` accepts: 4, "4", 1.58, "1.58", "ternary", or a width."""

WIDTHS: tuple[Width, ...] = tuple(Width(precision) for precision in _PRECISIONS)
"""All nine, from the least precise to the most."""

_BY_NAME = {str(width): width for width in WIDTHS} | {"ternary": Width(TERNARY)}
_BY_NUMBER = {width.precision: width for width in WIDTHS}


def _by_number(value: object) -> Width | None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    return _BY_NUMBER.get(float(cast(float, value)))


def _no_such_width(value: object) -> WidthError:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    advice = "widths are 1, 1.58 (ternary), 2, 3, 4, 5, 6, 7 and 8"
    if number is not None and 1 < number < 2:
        advice = f"ternary is written 1.58; {advice}"
    if number is not None and number > 8:
        advice = f"leave the layer in floating point, or use 8; {advice}"
    shown = f"{number:g} bits" if number is not None else repr(value)
    return WidthError(f"there is no width of {shown}", hint=advice)
