"""Types of LLVM IR as objects.

A type may also be spelled as LLVM spells it, as in `<16 x i8>`; `type_of` reads it at once, so a
type that does not exist is an error where it is written, not where LLVM reads the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal


class IrTypeError(TypeError):
    """LLVM IR that no types allow: its generator is wrong, whatever it was given."""


@dataclass(frozen=True)
class Void:
    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True)
class Int:
    """Bits without a sign: instructions say how they read them."""

    bits: int

    def __str__(self) -> str:
        return f"i{self.bits}"


@dataclass(frozen=True)
class Float:
    kind: Literal["half", "bfloat", "float", "double"]

    @property
    def bits(self) -> int:
        return {"half": 16, "bfloat": 16, "float": 32, "double": 64}[self.kind]

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Pointer:
    def __str__(self) -> str:
        return "ptr"


@dataclass(frozen=True)
class Vector:
    lanes: int
    element: Int | Float

    @property
    def bits(self) -> int:
        return self.lanes * self.element.bits

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.element}>"


@dataclass(frozen=True)
class Array:
    count: int
    element: Type

    def __str__(self) -> str:
        return f"[{self.count} x {self.element}]"


@dataclass(frozen=True)
class Struct:
    fields: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{{ {', '.join(map(str, self.fields))} }}" if self.fields else "{}"


Type = Void | Int | Float | Pointer | Vector | Array | Struct
Spelled = Type | str
"""A type, or its spelling."""

VOID, PTR = Void(), Pointer()
I1, I8, I16, I32, I64 = (Int(bits) for bits in (1, 8, 16, 32, 64))
F16, BF16, F32, F64 = Float("half"), Float("bfloat"), Float("float"), Float("double")
_NAMED: dict[str, Type] = {str(t): t for t in (VOID, PTR, F16, BF16, F32, F64)}


def type_of(spelled: Spelled, index: Int = I64) -> Type:
    """Return the type of a spelling; `index` spells the one of sizes and addresses."""
    if spelled == "index":
        return index
    return _read(spelled) if isinstance(spelled, str) else spelled


@cache
def _read(text: str) -> Type:
    tokens = iter([*re.findall(r"\w+|[<>\[\]{},]|\S", text), ""])
    type = _next_type(tokens, next(tokens), text)
    if next(tokens):
        raise IrTypeError(f"'{text}' is no type of LLVM IR")
    return type


def _next_type(tokens: Iterator[str], token: str, text: str) -> Type:
    if token in _NAMED:
        return _NAMED[token]
    if re.fullmatch(r"i[1-9]\d*", token):
        return Int(int(token[1:]))
    if token in ("<", "["):
        count, times = next(tokens), next(tokens)
        element = _next_type(tokens, next(tokens), text)
        if count.isdigit() and times == "x" and next(tokens) == {"<": ">", "[": "]"}[token]:
            if token == "[":
                return Array(int(count), element)
            if isinstance(element, Int | Float) and int(count):
                return Vector(int(count), element)
    if token == "{":
        fields: list[Type] = []
        while (token := next(tokens)) not in ("}", ""):
            fields.append(_next_type(tokens, next(tokens) if token == "," else token, text))
        if token == "}":
            return Struct(tuple(fields))
    raise IrTypeError(f"'{text}' is no type of LLVM IR")


def scalar(type: Type) -> Type:
    """Return what each lane of a vector is; any other type itself."""
    return type.element if isinstance(type, Vector) else type


def with_element(type: Type, element: Spelled) -> Type:
    """Return as many lanes of another type; one, if the type is no vector."""
    element = type_of(element)
    if not isinstance(type, Vector):
        return element
    if not isinstance(element, Int | Float):
        raise IrTypeError(f"there is no vector of {element}")
    return Vector(type.lanes, element)
