"""Changes of object files that LLVM has no words for: names of symbols, and a mark of Arm's.

What grows stands anew at the end of the file, where the header of its section then points: nothing
else moves.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from fewbit.toolchain.elf import SYMBOL_TABLE, Section, sections

_ATTRIBUTES = ".ARM.attributes"
_FLOAT_ARGUMENTS, _EITHER_WAY = 28, 3
_FIRST_LENGTH, _FILE_LENGTH = 1, 12
"""Where lengths are, behind the version and behind the vendor's name "aeabi" and a tag."""


def rename_symbols(elf: bytes, names: Mapping[str, str]) -> bytes:
    """Return an object in which symbols have other names, those that it lacks among them."""
    every, edited = sections(elf), bytearray(elf)
    is_wide = elf[4] == 2
    step = 24 if is_wide else 16
    for table in every:
        if table.kind != SYMBOL_TABLE:
            continue
        strings = every[table.link]
        text = bytearray(elf[strings.offset : strings.offset + strings.size])
        for at in range(table.offset, table.offset + table.size, step):
            (start,) = struct.unpack_from("<I", elf, at)
            name = bytes(text[start : text.index(b"\0", start)]).decode()
            if name in names:
                struct.pack_into("<I", edited, at, len(text))
                text += names[name].encode() + b"\0"
        _move(edited, table.link, bytes(text))
    return bytes(edited)


def take_floats_either_way(elf: bytes) -> bytes:
    """Return an object of Arm's that says that it passes no floats, in registers or elsewhere.

    Linkers then take it into programs that pass them either way.
    """
    for number, each in enumerate(sections(elf)):
        if each.name == _ATTRIBUTES:
            edited = bytearray(elf)
            _move(edited, number, _with_mark(elf, each))
            return bytes(edited)
    return elf


def _with_mark(elf: bytes, place: Section) -> bytes:
    data = bytearray(elf[place.offset : place.offset + place.size])
    mark = bytes([_FLOAT_ARGUMENTS, _EITHER_WAY])
    for at in (_FIRST_LENGTH, _FILE_LENGTH):
        (length,) = struct.unpack_from("<I", data, at)
        struct.pack_into("<I", data, at, length + len(mark))
    return bytes(data + mark)


def _move(elf: bytearray, number: int, data: bytes) -> None:
    """Have the header of a section point to these bytes, at the end of the file."""
    is_wide = elf[4] == 2
    (table,) = struct.unpack_from("<Q", elf, 40) if is_wide else struct.unpack_from("<I", elf, 32)
    (entry,) = struct.unpack_from("<H", elf, 58 if is_wide else 46)
    elf.extend(bytes(-len(elf) % 8))
    fields, at = ("<QQ", 24) if is_wide else ("<II", 16)
    struct.pack_into(fields, elf, table + number * entry + at, len(elf), len(data))
    elf.extend(data)
