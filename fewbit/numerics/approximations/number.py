"""What a formula may do with a number, and numbers that are numpy arrays.

Every operation is one that vector units have and that rounds as IEEE 754 says. A constant takes
the type of the number that it meets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Op: TypeAlias = Literal[
    "add", "sub", "mul", "div", "negate", "magnitude", "floor", "sqrt",
    "and", "or", "xor", "shift_left", "shift_right",
    "less", "greater", "equal", "select",
    "bits", "float_of_bits", "float_of_integer", "low_word", "wide", "narrow",
]  # fmt: skip


class Number(ABC):
    """A float, an integer or a condition, of which formulas need not know more."""

    @abstractmethod
    def emit(self, op: Op, *operands: Number) -> Number:
        """Return the result of an operation on this number and others."""

    @abstractmethod
    def constant(self, value: float) -> Number:
        """Return a constant of this number's type."""

    def _binary(self, op: Op, other: Number | float, swapped: bool = False) -> Number:
        rhs = other if isinstance(other, Number) else self.constant(other)
        return rhs.emit(op, self) if swapped else self.emit(op, rhs)

    def __add__(self, other: Number | float) -> Number:
        return self._binary("add", other)

    def __radd__(self, other: float) -> Number:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other: Number | float) -> Number:
        return self._binary("sub", other)

    def __rsub__(self, other: float) -> Number:
        return self._binary("sub", other, swapped=True)

    def __mul__(self, other: Number | float) -> Number:
        return self._binary("mul", other)

    def __rmul__(self, other: float) -> Number:
        return self._binary("mul", other, swapped=True)

    def __truediv__(self, other: Number | float) -> Number:
        return self._binary("div", other)

    def __rtruediv__(self, other: float) -> Number:
        return self._binary("div", other, swapped=True)

    def __and__(self, other: Number | int) -> Number:
        return self._binary("and", other)

    def __or__(self, other: Number | int) -> Number:
        return self._binary("or", other)

    def __xor__(self, other: Number | int) -> Number:
        return self._binary("xor", other)

    def __lshift__(self, other: int) -> Number:
        return self._binary("shift_left", other)

    def __rshift__(self, other: int) -> Number:
        """Shift an integer, filled with its sign."""
        return self._binary("shift_right", other)

    def __lt__(self, other: Number | float) -> Number:
        """Compare; false where either is NaN, as for `>` and `equals`."""
        return self._binary("less", other)

    def __gt__(self, other: Number | float) -> Number:
        return self._binary("greater", other)

    def equals(self, other: Number | float) -> Number:
        return self._binary("equal", other)

    def __neg__(self) -> Number:
        return self.emit("negate")

    def __abs__(self) -> Number:
        return self.emit("magnitude")

    def apply(self, formula: Callable[[Number], Number]) -> Number:
        """A function of this number: by its formula, unless numbers of this kind have another."""
        return formula(self)

    def floor(self) -> Number:
        return self.emit("floor")

    def sqrt(self) -> Number:
        return self.emit("sqrt")

    def bits(self) -> Number:
        """Return the bit pattern, as an integer of the same width."""
        return self.emit("bits")

    def float_of_bits(self) -> Number:
        return self.emit("float_of_bits")

    def float_of_integer(self) -> Number:
        return self.emit("float_of_integer")

    def low_word(self) -> Number:
        """Return the lower 32 of 64 bits."""
        return self.emit("low_word")

    def wide(self) -> Number:
        """Convert to float64."""
        return self.emit("wide")

    def narrow(self) -> Number:
        """Round to float32."""
        return self.emit("narrow")


def select(condition: Number, yes: Number | float, no: Number | float) -> Number:
    """Return one of two numbers, of which at least one is no constant."""
    if not isinstance(yes, Number):
        assert isinstance(no, Number)
        yes = no.constant(yes)
    return condition.emit("select", yes, no if isinstance(no, Number) else yes.constant(no))


def at_least(x: Number, low: float) -> Number:
    """Return the larger of both; NaN stays."""
    return select(x < low, low, x)


def at_most(x: Number, high: float) -> Number:
    """Return the smaller of both; NaN stays."""
    return select(x > high, high, x)


SIGN: Final = -(1 << 31)


def with_sign_of(size: Number, x: Number) -> Number:
    """Give a float32 that is not negative the sign of another."""
    return (size.bits() | (x.bits() & SIGN)).float_of_bits()


_INTEGERS: Mapping[np.dtype[Any], Any] = {
    np.dtype(np.float32): np.int32,
    np.dtype(np.float64): np.int64,
}
_FLOATS: Mapping[np.dtype[Any], Any] = {
    np.dtype(np.int32): np.float32,
    np.dtype(np.int64): np.float64,
}


def _bits(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.view(_INTEGERS[x.dtype])


def _float_of_bits(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.view(_FLOATS[x.dtype])


def _float_of_integer(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(_FLOATS[x.dtype])


def _low_word(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.int32)


def _wide(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.float64)


def _narrow(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return x.astype(np.float32)


_NUMPY: Mapping[Op, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "negate": np.negative, "magnitude": np.abs, "floor": np.floor, "sqrt": np.sqrt,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shift_left": np.left_shift, "shift_right": np.right_shift,
    "less": np.less, "greater": np.greater, "equal": np.equal, "select": np.where,
    "bits": _bits, "float_of_bits": _float_of_bits, "float_of_integer": _float_of_integer,
    "low_word": _low_word, "wide": _wide, "narrow": _narrow,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Lanes(Number):
    """Many numbers at once, in a numpy array."""

    values: npt.NDArray[Any]

    def emit(self, op: Op, *operands: Number) -> Number:
        given = [number.values for number in (self, *operands) if isinstance(number, Lanes)]
        return Lanes(_NUMPY[op](*given))

    def constant(self, value: float) -> Number:
        return Lanes(np.full(1, value, self.values.dtype))


def evaluate(
    formula: Callable[..., Number], *inputs: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Evaluate a formula on arrays of float32."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    with np.errstate(all="ignore"):
        result = formula(*(Lanes(np.atleast_1d(np.asarray(x, np.float32))) for x in inputs))
    assert isinstance(result, Lanes)
    return np.broadcast_to(result.values, shape or (1,)).reshape(shape)
