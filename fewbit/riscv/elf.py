"""Reading ELF executables of RISC-V, 32 and 64 bits: what to put where, and the symbols."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fewbit.errors import ParseError

EXECUTE, WRITE = 1, 2
_LOAD, _SYMTAB, _FUNCTION = 1, 2, 2
_RISCV = 243


@dataclass(frozen=True)
class Segment:
    """A stretch of memory: `data`, then zeros up to `size`."""

    address: int
    data: bytes
    size: int
    flags: int

    @property
    def executable(self) -> bool:
        return bool(self.flags & EXECUTE)


@dataclass(frozen=True)
class Symbol:
    address: int
    size: int
    function: bool


@dataclass(frozen=True)
class Executable:
    xlen: int
    entry: int
    segments: tuple[Segment, ...]
    symbols: dict[str, Symbol] = field(default_factory=dict[str, Symbol])

    @property
    def end(self) -> int:
        """The first address behind all of it: free memory begins here."""
        return max((segment.address + segment.size for segment in self.segments), default=0)


def read(elf: bytes) -> Executable:
    """Read a linked program."""
    if len(elf) < 52 or elf[:4] != b"\x7fELF":
        raise ParseError("this is not an ELF file")
    if elf[4] not in (1, 2) or elf[5] != 1:
        raise ParseError("this ELF file is not a little-endian one of 32 or 64 bits")
    xlen = 32 * elf[4]
    machine = struct.unpack_from("<H", elf, 18)[0]
    if machine != _RISCV:
        raise ParseError(f"this ELF file is for machine {machine}, not for RISC-V ({_RISCV})")
    try:
        return _read(elf, xlen)
    except struct.error as error:
        raise ParseError("the ELF file is cut short") from error


def _read(elf: bytes, xlen: int) -> Executable:
    wide = xlen == 64
    entry, programs, sections = struct.unpack_from("<QQQ" if wide else "<III", elf, 24)
    _, _, program_size, programs_n, section_size, sections_n, _ = struct.unpack_from(
        "<IHHHHHH", elf, 48 if wide else 36
    )[:7]
    segments: list[Segment] = []
    for i in range(programs_n):
        at = programs + i * program_size
        if wide:
            kind, flags, offset, address, _, filled, size = struct.unpack_from("<IIQQQQQ", elf, at)
        else:
            kind, offset, address, _, filled, size, flags = struct.unpack_from("<7I", elf, at)
        if kind != _LOAD or not size:
            continue
        if offset + filled > len(elf):
            raise ParseError("the ELF file is cut short")
        segments.append(Segment(address, elf[offset : offset + filled], size, flags))
    headers: list[tuple[int, ...]] = [
        struct.unpack_from("<IIQQQQIIQQ" if wide else "<10I", elf, sections + i * section_size)
        for i in range(sections_n)
    ]
    symbols: dict[str, Symbol] = {}
    for header in headers:
        if header[1] == _SYMTAB:
            strings = headers[header[6]][4]
            symbols.update(_symbols(elf, wide, header[4], header[5], strings))
    return Executable(xlen, entry, tuple(segments), symbols)


def _symbols(elf: bytes, wide: bool, start: int, size: int, strings: int) -> dict[str, Symbol]:
    symbols: dict[str, Symbol] = {}
    step = 24 if wide else 16
    for at in range(start + step, start + size, step):
        if wide:
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", elf, at)
        else:
            name, value, length, info, _, section = struct.unpack_from("<IIIBBH", elf, at)
        if not name or not section:
            continue
        text = elf[strings + name : elf.index(b"\0", strings + name)].decode()
        symbols[text] = Symbol(value, length, info & 15 == _FUNCTION)
    return symbols
