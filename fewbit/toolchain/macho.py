"""Object files of macOS: the symbols that they define and lack, and one that is all weights."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fewbit.toolchain.elf import Symbol

MACHINES = {"x86_64": (0x01000007, 3), "aarch64": (0x0100000C, 0)}
"""Families of processors, and in each the one that all others are like."""
OLDEST = (11, 0)
"""The version of macOS that libraries are for, and later ones."""
_MAGIC, _OBJECT, _BY_SYMBOLS = 0xFEEDFACF, 1, 0x2000
_SEGMENT, _SYMBOLS, _BUILD = 0x19, 0x02, 0x32
_HEADER = struct.Struct("<8I")
_SEGMENT_COMMAND = struct.Struct("<II16sQQQQiiII")
_SECTION = struct.Struct("<16s16sQQIIIIIIII")
_BUILD_COMMAND = struct.Struct("<IIIIII")
_SYMBOLS_COMMAND = struct.Struct("<IIIIII")
_SYMBOL = struct.Struct("<IBBHQ")
_EXTERNAL, _PRIVATE, _KIND, _IN_SECTION = 1, 0x10, 0x0E, 0x0E
LINE = 64


def symbols(data: bytes) -> Iterator[Symbol]:
    """Yield symbols that other objects may see, or that must come from them, as C spells them."""
    _, _, _, _, commands, _, _, _ = _HEADER.unpack_from(data)
    at = _HEADER.size
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == _SYMBOLS:
            yield from _table(data, *struct.unpack_from("<IIII", data, at + 8))
        at += size


def _table(data: bytes, table: int, count: int, strings: int, size: int) -> Iterator[Symbol]:
    for number in range(count):
        name, kind, _, _, value = _SYMBOL.unpack_from(data, table + number * _SYMBOL.size)
        if kind & _EXTERNAL:
            start = strings + name
            text = data[start : data.index(b"\0", start, strings + size)].decode()
            is_defined = kind & _KIND != 0 or value != 0
            yield Symbol(text.removeprefix("_"), is_defined, kind & _PRIVATE != 0)


def weights_object(symbol: str, image: memoryview, architecture: str) -> bytes:
    """Return an object that defines `symbol` as these bytes, read-only and aligned to 64."""
    segment_bytes = _SEGMENT_COMMAND.size + _SECTION.size
    commands = segment_bytes + _BUILD_COMMAND.size + _SYMBOLS_COMMAND.size
    start = -(-(_HEADER.size + commands) // LINE) * LINE
    size = image.nbytes
    table = -(-(start + size) // 8) * 8
    name = f"\0_{symbol}\0".encode()
    oldest = OLDEST[0] << 16 | OLDEST[1] << 8
    head = b"".join(
        [
            _HEADER.pack(_MAGIC, *MACHINES[architecture], _OBJECT, 3, commands, _BY_SYMBOLS, 0),
            _SEGMENT_COMMAND.pack(_SEGMENT, segment_bytes, b"", 0, size, start, size, 7, 7, 1, 0),
            _SECTION.pack(b"__const", b"__TEXT", 0, size, start, 6, 0, 0, 0, 0, 0, 0),
            _BUILD_COMMAND.pack(_BUILD, _BUILD_COMMAND.size, 1, oldest, oldest, 0),
            _SYMBOLS_COMMAND.pack(
                _SYMBOLS, _SYMBOLS_COMMAND.size, table, 1, table + _SYMBOL.size, len(name)
            ),
        ]
    ).ljust(start, b"\0")
    defined = _SYMBOL.pack(1, _IN_SECTION | _EXTERNAL | _PRIVATE, 1, 0, 0)
    return b"".join([head, image, bytes(table - start - size), defined, name])
