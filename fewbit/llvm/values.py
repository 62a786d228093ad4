"""Values of a function under construction: arithmetic on them writes instructions.

Types decide which instruction: `a < b` is `fcmp olt` for floats and `icmp slt` for integers, which
have `compare("ult", b)` where they are read as unsigned. Operands of other types than an
instruction takes are an `IrTypeError` where it is written. A Python number stands for a constant of
the type of what it is beside.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from fewbit.llvm.types import (
    I1,
    PTR,
    Array,
    Float,
    Int,
    IrTypeError,
    Pointer,
    Spelled,
    Struct,
    Type,
    Vector,
    scalar,
    type_of,
    with_element,
)

if TYPE_CHECKING:
    from fewbit.llvm.instructions import Instructions

_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_POINTER_PREDICATES = ("eq", "ne", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = (
    *("oeq", "one", "olt", "ole", "ogt", "oge", "ord"),
    *("ueq", "une", "ult", "ule", "ugt", "uge", "uno"),
)
_SIGNED, _ORDERED = "s", "o"


@dataclass(frozen=True)
class Constant:
    """A value that is known while code is written."""

    type: Type
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def typed(self) -> str:
        return f"{self.type} {self.text}"


def constant(spelled: Spelled, value: float | bool) -> Constant:
    """Return a number as a constant; in a vector, the same in every lane."""
    type = type_of(spelled)
    if isinstance(type, Vector):
        return constants(type.element, [value] * type.lanes)
    if isinstance(type, Int) and isinstance(value, int):
        if not -(1 << type.bits - 1) <= value < 1 << type.bits:
            raise IrTypeError(f"{value} has more bits than {type}")
        return Constant(type, str(value).lower())
    if isinstance(type, Float) and isinstance(value, float):
        return Constant(type, _float_text(type, value))
    raise IrTypeError(f"{value!r} is no constant of type {type}")


def constants(element: Spelled, values: Sequence[float]) -> Constant:
    """Return a vector of constants, one for each lane."""
    lanes = [constant(element, value) for value in values]
    type = with_element(Vector(len(values), I1), element)
    return Constant(type, f"<{', '.join(lane.typed for lane in lanes)}>")


def array(values: Sequence[Constant]) -> Constant:
    types = {value.type for value in values}
    if len(types) != 1:
        raise IrTypeError("an array has elements of one type")
    return Constant(Array(len(values), types.pop()), f"[{_join(values)}]")


def structure(values: Sequence[Constant]) -> Constant:
    return Constant(Struct(tuple(v.type for v in values)), f"{{ {_join(values)} }}")


def string(text: str) -> Constant:
    """Return the bytes of a text, ended by a zero as in C."""
    data = text.encode() + b"\0"
    spelled = "".join(chr(b) if chr(b).isalnum() else f"\\{b:02X}" for b in data)
    return Constant(Array(len(data), Int(8)), f'c"{spelled}"')


def symbol(name: str) -> Constant:
    """Return the address of a function or global."""
    is_plain = re.fullmatch(r"[A-Za-z_.$][\w.$-]*", name, re.ASCII)
    return Constant(PTR, f"@{name}" if is_plain else f'@"{name}"')


NULL = Constant(PTR, "null")


def _join(values: Sequence[Constant]) -> str:
    return ", ".join(value.typed for value in values)


def _float_text(type: Float, value: float) -> str:
    """Return bits in hexadecimal, as LLVM writes them: for float and double those of a double."""
    kinds = {"half": np.float16, "bfloat": ml_dtypes.bfloat16, "float": np.float32}
    with np.errstate(over="ignore"):
        rounded = np.array(value, kinds.get(type.kind, np.float64))
    if type.bits == 16:
        letter = "H" if type.kind == "half" else "R"
        return f"0x{letter}{int(rounded.view(np.uint16)):04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(rounded)))[0]:016X}"


@dataclass(frozen=True, eq=False)
class Value:
    """A name in a function, with its type."""

    function: Instructions
    type: Type
    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def typed(self) -> str:
        return f"{self.type} {self.text}"

    def like(self, other: Operand) -> Value:
        """Return the other operand of an instruction whose operands have one type."""
        other = self.function.value(other, self.type)
        if other.type != self.type:
            raise IrTypeError(f"{self.typed} does not go with {other.typed}")
        return other

    # Arithmetic

    def _binary(self, integers: str | None, floats: str | None, other: Operand) -> Value:
        kind = scalar(self.type)
        name = integers if isinstance(kind, Int) else floats if isinstance(kind, Float) else None
        if name is None:
            raise IrTypeError(f"there is no {integers or floats} of {self.typed}")
        return self.function.emit(self.type, f"{name} {self.typed}, {self.like(other)}")

    def __add__(self, other: Operand) -> Value:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("sub", "fsub", other)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("mul", "fmul", other)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary(None, "fdiv", other)

    def __floordiv__(self, other: Operand) -> Value:
        """Return the quotient of unsigned integers."""
        return self._binary("udiv", None, other)

    def __mod__(self, other: Operand) -> Value:
        """Return the remainder of unsigned integers."""
        return self._binary("urem", None, other)

    def signed_quotient(self, other: Operand) -> Value:
        return self._binary("sdiv", None, other)

    def signed_remainder(self, other: Operand) -> Value:
        return self._binary("srem", None, other)

    def __neg__(self) -> Value:
        if isinstance(scalar(self.type), Float):
            return self.function.emit(self.type, f"fneg {self.typed}")
        return self.function.value(0, self.type) - self

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", None, other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", None, other)

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", None, other)

    def shift_left(self, places: Operand) -> Value:
        return self._binary("shl", None, places)

    def shift_right(self, places: Operand) -> Value:
        """Shift right; zeros come in from the left."""
        return self._binary("lshr", None, places)

    def shift_right_signed(self, places: Operand) -> Value:
        """Shift right; copies of the sign come in from the left."""
        return self._binary("ashr", None, places)

    # Comparisons

    def compare(self, predicate: str, other: Operand) -> Value:
        """Return LLVM's comparison of this name, which must be one of the operands' type."""
        kind = scalar(self.type)
        allowed: tuple[str, ...] = ()
        if isinstance(kind, Float):
            allowed = _FLOAT_PREDICATES
        elif isinstance(kind, Int):
            allowed = _INTEGER_PREDICATES
        elif isinstance(kind, Pointer):
            allowed = _POINTER_PREDICATES
        if predicate not in allowed:
            raise IrTypeError(f"{self.typed} cannot be compared by '{predicate}'")
        name = "fcmp" if isinstance(kind, Float) else "icmp"
        result = with_element(self.type, I1)
        return self.function.emit(result, f"{name} {predicate} {self.typed}, {self.like(other)}")

    def _compare(self, relation: str, other: Operand) -> Value:
        is_float = isinstance(scalar(self.type), Float)
        return self.compare((_ORDERED if is_float else _SIGNED) + relation, other)

    def __lt__(self, other: Operand) -> Value:
        return self._compare("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self._compare("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self._compare("ge", other)

    def equals(self, other: Operand) -> Value:
        return self.compare("oeq" if isinstance(scalar(self.type), Float) else "eq", other)

    def differs(self, other: Operand) -> Value:
        return self.compare("une" if isinstance(scalar(self.type), Float) else "ne", other)

    def inside(self, size: Operand) -> Value:
        """Return 0 <= self < size, in one unsigned comparison."""
        return self.compare("ult", size)

    def is_null(self) -> Value:
        return self.compare("eq", NULL)


Operand = Value | Constant | float
"""What an instruction takes: a value, or what becomes a constant of the type that it needs."""
