"""Object files of Windows: the symbols that they define and lack, and one that is all weights."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fewbit.toolchain.elf import Symbol

MACHINES = {"x86_64": 0x8664, "aarch64": 0xAA64}
_HEADER = struct.Struct("<HHIIIHH")
_SECTION = struct.Struct("<8sIIIIIIHHI")
_SYMBOL = struct.Struct("<8sIhHBB")
_EXTERNAL, _WEAK = 2, 105
_READ_ONLY = 0x40000000 | 0x00000040
"""May be read; is data that the file has."""
LINE = 64
_ALIGNED = 7 << 20
"""To 64 bytes: the logarithm and one, in the bits for that."""


def symbols(data: bytes) -> Iterator[Symbol]:
    """Yield symbols that other objects may see, or that must come from them."""
    _, _, _, table, count, _, _ = _HEADER.unpack_from(data)
    strings = table + count * _SYMBOL.size
    number = 0
    while number < count:
        name, value, section, _, kind, more = _SYMBOL.unpack_from(data, table + number * 18)
        number += 1 + more
        if kind in (_EXTERNAL, _WEAK):
            defined = section != 0 or value != 0 or kind == _WEAK
            yield Symbol(_name(data, name, strings), defined, False)


def _name(data: bytes, field: bytes, strings: int) -> str:
    """Return a name, which stands in a table if it is longer than its field."""
    zeros, offset = struct.unpack("<II", field)
    if zeros:
        return field.rstrip(b"\0").decode()
    start = strings + offset
    return data[start : data.index(b"\0", start)].decode()


def weights_object(symbol: str, image: memoryview, architecture: str) -> bytes:
    """Return an object that defines `symbol` as these bytes, read-only and aligned to 64."""
    start = -(-(_HEADER.size + _SECTION.size) // LINE) * LINE
    table = start + image.nbytes
    header = _HEADER.pack(MACHINES[architecture], 1, 0, table, 1, 0, 0)
    place = (0, 0, image.nbytes, start, 0, 0, 0, 0, _READ_ONLY | _ALIGNED)
    head = (header + _SECTION.pack(b".rdata", *place)).ljust(start, b"\0")
    defined = _SYMBOL.pack(struct.pack("<II", 0, 4), 0, 1, 0, _EXTERNAL, 0)
    name = symbol.encode() + b"\0"
    return b"".join([head, image, defined, struct.pack("<I", 4 + len(name)), name])
