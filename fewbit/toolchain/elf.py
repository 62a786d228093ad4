"""What we need to know of an object file or library: its sections and symbols.

Files are little-endian ELF of 64 bits; sections and symbols are read from files of 32 bits, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from fewbit.errors import Error

Bytes = bytes | bytearray

SYMBOL_TABLE = 2
DYNAMIC, DYNAMIC_SYMBOLS = 6, 11
NEEDED, SONAME = 1, 14
UNDEFINED = 0
GLOBAL, WEAK = 1, 2
FUNCTION = 2
HIDDEN = 2


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Symbol:
    name: str
    defined: bool
    hidden: bool


def sections(elf: Bytes) -> list[Section]:
    is_wide = elf[4] == 2
    (table,) = struct.unpack_from("<Q", elf, 40) if is_wide else struct.unpack_from("<I", elf, 32)
    entry, count, names = struct.unpack_from("<HHH", elf, 58 if is_wide else 46)
    fields = "<IIQQQQI" if is_wide else "<IIIIIII"
    headers = [struct.unpack_from(fields, elf, table + i * entry) for i in range(count)]
    strings = headers[names][4]
    return [Section(_text(elf, strings + h[0]), h[1], *h[3:]) for h in headers]


def section(elf: Bytes, name: str) -> Section:
    for each in sections(elf):
        if each.name == name:
            return each
    raise Error(f"the object has no section {name}")


def fill_section(elf: bytes, name: str, data: memoryview, alignment: int) -> bytes:
    """Return an object in which a section, and the symbol in it, is these bytes.

    They stand at the end of the file, to which its header then points: nothing else moves.
    """
    every, is_wide = sections(elf), elf[4] == 2
    number = next(i for i, each in enumerate(every) if each.name == name)
    end = -(-len(elf) // alignment) * alignment
    head = bytearray(elf.ljust(end, b"\0"))
    (table,) = struct.unpack_from("<Q", elf, 40) if is_wide else struct.unpack_from("<I", elf, 32)
    (entry,) = struct.unpack_from("<H", elf, 58 if is_wide else 46)
    fields, at = ("<QQ", 24) if is_wide else ("<II", 16)
    struct.pack_into(fields, head, table + number * entry + at, end, data.nbytes)
    for each in every:
        if each.kind == SYMBOL_TABLE:
            _resize_symbols(head, each, number, data.nbytes, is_wide)
    return b"".join([head, data])


def _resize_symbols(elf: bytearray, table: Section, section: int, size: int, wide: bool) -> None:
    step, index_at, size_at, field = (24, 6, 16, "<Q") if wide else (16, 14, 8, "<I")
    for at in range(table.offset, table.offset + table.size, step):
        (index,) = struct.unpack_from("<H", elf, at + index_at)
        (before,) = struct.unpack_from(field, elf, at + size_at)
        if index == section and before:
            struct.pack_into(field, elf, at + size_at, size)


def symbols(elf: Bytes) -> Iterator[Symbol]:
    """Yield symbols that other objects may see, or that must come from them."""
    return _symbols(elf, SYMBOL_TABLE)


def dynamic_symbols(elf: Bytes) -> Iterator[str]:
    """Yield the symbols that a shared library exports."""
    return (symbol.name for symbol in _symbols(elf, DYNAMIC_SYMBOLS) if symbol.defined)


def functions_of(elf: Bytes) -> dict[str, bytes]:
    """Return the bytes of each function of an object file."""
    functions: dict[str, bytes] = {}
    every = sections(elf)
    for strings, at in _entries(elf, SYMBOL_TABLE):
        name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", elf, at)
        if info & 15 != FUNCTION or not size or index >= len(every):
            continue
        start = every[index].offset + value
        functions[_text(elf, strings + name)] = bytes(elf[start : start + size])
    return functions


def dynamic_data(elf: Bytes, name: str) -> bytes | None:
    """Return the bytes of a constant that a shared library exports."""
    every = sections(elf)
    for strings, at in _entries(elf, DYNAMIC_SYMBOLS):
        text, _, _, index, address, size = struct.unpack_from("<IBBHQQ", elf, at)
        if UNDEFINED < index < len(every) and _text(elf, strings + text) == name:
            start = every[index].offset + address - every[index].address
            return bytes(elf[start : start + size])
    return None


def soname_of(elf: Bytes) -> str | None:
    """Return the soname of a shared library, if it has one."""
    return next(_names(elf, SONAME), None)


def needed_by(elf: Bytes) -> tuple[str, ...]:
    """Return the names of libraries that a shared library needs."""
    return tuple(_names(elf, NEEDED))


def _names(elf: Bytes, wanted: int) -> Iterator[str]:
    every = sections(elf)
    for table in every:
        if table.kind != DYNAMIC:
            continue
        for at in range(table.offset, table.offset + table.size, 16):
            tag, value = struct.unpack_from("<QQ", elf, at)
            if tag == wanted:
                yield _text(elf, every[table.link].offset + value)


def _symbols(elf: Bytes, kind: int) -> Iterator[Symbol]:
    is_wide = elf[4] == 2
    for strings, at in _entries(elf, kind):
        (name,) = struct.unpack_from("<I", elf, at)
        info, other, index = struct.unpack_from("<BBH", elf, at + (4 if is_wide else 12))
        if info >> 4 in (GLOBAL, WEAK) and name:
            yield Symbol(_text(elf, strings + name), index != UNDEFINED, other & 3 == HIDDEN)


def _entries(elf: Bytes, kind: int) -> Iterator[tuple[int, int]]:
    """Yield each entry of the symbol tables of a kind, behind the offset of their names."""
    every = sections(elf)
    for table in every:
        if table.kind != kind:
            continue
        strings = every[table.link].offset
        for at in range(table.offset, table.offset + table.size, 24 if elf[4] == 2 else 16):
            yield strings, at


def _text(elf: Bytes, start: int) -> str:
    return bytes(elf[start : elf.index(b"\0", start)]).decode()
