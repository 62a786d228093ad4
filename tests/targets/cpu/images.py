"""Reads libraries of Windows and macOS: what they export, what they need, and how they are marked.

It shares nothing with the compiler's own code for these formats.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Dll:
    machine: int
    is_dll: bool
    characteristics: int
    entry: int
    exports: tuple[str, ...]
    imports: dict[str, tuple[str, ...]]
    directories: tuple[int, ...]
    """The sizes of tables of the system's, by their numbers."""
    bytes_of: dict[str, bytes]
    """The first bytes of what is exported."""


TLS, EXPORT, IMPORT, RELOCATIONS = 9, 0, 1, 5


def read_dll(data: bytes) -> Dll:
    (start,) = struct.unpack_from("<I", data, 0x3C)
    assert data[start : start + 4] == b"PE\0\0"
    machine, count, _, _, _, optional, flags = struct.unpack_from("<HHIIIHH", data, start + 4)
    head = start + 24
    magic, entry = struct.unpack_from("<H14xI", data, head)
    assert magic == 0x20B, "64 bits"
    (characteristics,) = struct.unpack_from("<H", data, head + 70)
    tables = [struct.unpack_from("<II", data, head + 112 + 8 * i) for i in range(16)]
    sections = [struct.unpack_from("<8sIIII", data, head + optional + 40 * i) for i in range(count)]

    def offset(address: int) -> int:
        for _, size, begin, held, raw in sections:
            if begin <= address < begin + max(size, held):
                return raw + address - begin
        raise AssertionError(f"{address:x} is in no section")

    def text(address: int) -> str:
        at = offset(address)
        return data[at : data.index(b"\0", at)].decode()

    names: list[str] = []
    bytes_of: dict[str, bytes] = {}
    if tables[EXPORT][1]:
        at = offset(tables[EXPORT][0])
        _, number, places, words, ordinals = struct.unpack_from("<IIIII", data, at + 20)
        for i in range(number):
            (name,) = struct.unpack_from("<I", data, offset(words) + 4 * i)
            (ordinal,) = struct.unpack_from("<H", data, offset(ordinals) + 2 * i)
            (place,) = struct.unpack_from("<I", data, offset(places) + 4 * ordinal)
            names.append(text(name))
            bytes_of[names[-1]] = data[offset(place) : offset(place) + 80]
    imports: dict[str, tuple[str, ...]] = {}
    at = offset(tables[IMPORT][0]) if tables[IMPORT][1] else 0
    while at:
        lookup, _, _, name, _ = struct.unpack_from("<IIIII", data, at)
        if not name:
            break
        found: list[str] = []
        entry_at = offset(lookup)
        while hint := struct.unpack_from("<Q", data, entry_at)[0]:
            found.append(text(hint + 2))
            entry_at += 8
        imports[text(name)] = tuple(found)
        at += 20
    sizes = tuple(size for _, size in tables)
    is_dll = bool(flags & 0x2000)
    return Dll(machine, is_dll, characteristics, entry, tuple(names), imports, sizes, bytes_of)


@dataclass(frozen=True)
class Dylib:
    cpu: int
    kind: int
    own_name: str
    libraries: tuple[str, ...]
    platform: int
    oldest: tuple[int, int]
    exports: tuple[str, ...]
    imports: tuple[str, ...]
    signature_flags: int


def read_dylib(data: bytes) -> Dylib:
    magic, cpu, _, kind, count, _, _, _ = struct.unpack_from("<8I", data)
    assert magic == 0xFEEDFACF
    own, libraries, exports, imports = "", list[str](), list[str](), list[str]()
    platform, oldest, flags = 0, 0, -1
    at = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command in (0x0C, 0x0D):
            (name,) = struct.unpack_from("<I", data, at + 8)
            path = data[at + name : at + size].rstrip(b"\0").decode()
            if command == 0x0D:
                own = path
            else:
                libraries.append(path)
        elif command == 0x32:
            platform, oldest = struct.unpack_from("<II", data, at + 8)
        elif command == 0x02:
            table, symbols, strings, _ = struct.unpack_from("<IIII", data, at + 8)
            for i in range(symbols):
                name, kind_of, _, _, _ = struct.unpack_from("<IBBHQ", data, table + 16 * i)
                end = data.index(b"\0", strings + name)
                spelled = data[strings + name : end].decode()
                if kind_of & 0x1 and not kind_of & 0x10:
                    (exports if kind_of & 0x0E else imports).append(spelled)
        elif command == 0x1D:
            flags = check_signature(data, *struct.unpack_from("<II", data, at + 8))
        at += size
    return Dylib(
        cpu, kind, own, tuple(libraries), platform, (oldest >> 16, oldest >> 8 & 255),
        tuple(exports), tuple(imports), flags,
    )  # fmt: skip


def check_signature(data: bytes, start: int, size: int) -> int:
    """Return the flags of a signature, all of whose hashes of pages are right."""
    magic, _, count = struct.unpack_from(">III", data, start)
    assert magic == 0xFADE0CC0
    places = [struct.unpack_from(">II", data, start + 12 + 8 * i) for i in range(count)]
    (directory,) = [start + place for kind, place in places if kind == 0]
    (magic, _, _, flags, hashes, _, _, pages, limit) = struct.unpack_from(">9I", data, directory)
    assert magic == 0xFADE0C02
    assert limit == start, "all but the signature itself is signed"
    length, kind, _, shift = struct.unpack_from(">BBBB", data, directory + 36)
    assert (length, kind) == (32, 2), "SHA-256"
    for i in range(pages):
        page = data[i << shift : min((i + 1) << shift, limit)]
        at = directory + hashes + length * i
        assert hashlib.sha256(page).digest() == data[at : at + length]
    assert pages == -(-limit >> shift)
    return flags
