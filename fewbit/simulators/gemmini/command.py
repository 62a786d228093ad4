"""What a command is: fields that say where in its two operands they lie.

A command is a RoCC instruction (custom-3) with a number, `funct`, and two 64-bit operands. `encode`
and `decode` follow the fields' places, so no command has code of its own. An address in DRAM may
be a `Pointer`, an offset into a buffer that has no place yet; `bind` gives it one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

from fewbit.errors import UnsupportedError, UsageError

Kind = Literal["unsigned", "signed", "f32", "dram"]

GARBAGE = 0xFFFFFFFF
"""The local address that stands for none: zeros where it is read, nothing where it is written."""
ACCUMULATOR = 1 << 31
ACCUMULATE = 1 << 30
FULL = 1 << 29
"""Bits of a local address: in the accumulator, added to it, and read as whole i32."""


class Encoded(NamedTuple):
    """What the port carries: 128 bits and a number."""

    funct: int
    rs1: int
    rs2: int


@dataclass(frozen=True)
class Pointer:
    """A place in DRAM before addresses are known."""

    buffer: str
    offset: int = 0

    def __add__(self, bytes: int) -> Pointer:
        return Pointer(self.buffer, self.offset + bytes)

    def __str__(self) -> str:
        return f"{self.buffer}+{self.offset:#x}" if self.offset else self.buffer


Dram = int | Pointer
"""An address; 0 for zeros, or for what is left out."""


class Place(NamedTuple):
    """Where a field lies."""

    operand: Literal[1, 2]
    low: int
    width: int
    kind: Kind


def bits(
    operand: Literal[1, 2], low: int, width: int, default: Any = 0, kind: Kind = "unsigned"
) -> Any:
    return field(default=default, metadata={"place": Place(operand, low, width, kind)})


@dataclass(frozen=True)
class Command:
    """One command; the names of its classes are those of the assembly text."""

    FUNCT: ClassVar[int]
    MNEMONIC: ClassVar[str]
    SELECTOR: ClassVar[int | None] = None
    """What the two lowest bits of the first operand are, where several share a number."""

    @classmethod
    @cache
    def places(cls) -> dict[str, Place]:
        return {each.name: each.metadata["place"] for each in fields(cls)}

    def encode(self) -> Encoded:
        words = [self.SELECTOR or 0, 0]
        for name, place in self.places().items():
            words[place.operand - 1] |= self._field(name, place) << place.low
        return Encoded(self.FUNCT, *words)

    def _field(self, name: str, place: Place) -> int:
        value = getattr(self, name)
        if isinstance(value, Pointer):
            raise UsageError(f"{self.MNEMONIC} has the address {value}, which has no place yet")
        if place.kind == "f32":
            return int.from_bytes(struct.pack("<f", value), "little")
        number, limit = int(value), 1 << place.width
        if place.kind == "signed" and -limit // 2 <= number < limit // 2:
            return number % limit
        if not 0 <= number < limit:
            raise UnsupportedError(
                f"{self.MNEMONIC} has {place.width} bits for '{name}', and {number} does not fit"
            )
        return number

    @classmethod
    def decode(cls, rs1: int, rs2: int) -> Self:
        values: dict[str, Any] = {}
        for name, place in cls.places().items():
            word = (rs1, rs2)[place.operand - 1] >> place.low & (1 << place.width) - 1
            if place.kind == "f32":
                word = struct.unpack("<f", word.to_bytes(4, "little"))[0]
            elif place.kind == "signed" and word >> place.width - 1:
                word -= 1 << place.width
            values[name] = word
        return cls(**values)

    @property
    def pointers(self) -> dict[int, Pointer]:
        """Return, by operand, 1 or 2, the pointers that have no place yet."""
        addresses = {place.operand: getattr(self, name) for name, place in self.places().items()}
        return {operand: p for operand, p in addresses.items() if isinstance(p, Pointer)}

    def bind(self, bases: Mapping[str, int]) -> Self:
        """Return the command with addresses for pointers."""
        moved = {
            name: bases[value.buffer] + value.offset
            for name in self.places()
            if isinstance(value := getattr(self, name), Pointer)
        }
        return replace(self, **moved) if moved else self

    def __str__(self) -> str:
        shown = [
            f"{name}={_format(name, getattr(self, name), place)}"
            for name, place in self.places().items()
            if getattr(self, name) or name in _ALWAYS
        ]
        return f"{self.MNEMONIC} {', '.join(shown)}".rstrip()


_ALWAYS = ("rows", "cols", "local", "i", "j", "k", "a", "b", "c", "d", "dram", "dataflow")


def _format(name: str, value: Any, place: Place) -> str:
    if place.kind == "dram":
        return str(value) if isinstance(value, Pointer) else f"{value:#x}"
    if place.width == 32 and name in ("local", "bd", "a", "c"):
        return local_text(value)
    return f"{value:.9g}" if place.kind == "f32" else str(value)


def local_text(address: int) -> str:
    """Return a local address in words: `sp[16]`, `acc[0]`, `acc+[0]` where it is added to."""
    if address == GARBAGE:
        return "none"
    if not address & ACCUMULATOR:
        return f"sp[{address}]"
    row = address & 0x3FFFFFF
    norm = address >> 26 & 7
    added, full = "+" * bool(address & ACCUMULATE), ".i32" * bool(address & FULL)
    return f"acc{added}{full}[{row}]{f'.norm{norm}' if norm else ''}"
