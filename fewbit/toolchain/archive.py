"""Static libraries: the `ar` format with an index of symbols, as every Unix linker reads it.

No wheel carries an archiver. The format is a page long, and writing it here with fixed dates and
owners makes equal inputs give equal files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAGIC = b"!<arch>\n"
SHORT = 15
"""Longest name that fits in a header with its closing slash."""


@dataclass(frozen=True)
class Member:
    name: str
    data: bytes
    symbols: tuple[str, ...]
    """Those that it defines for others."""


def archive(members: Sequence[Member]) -> bytes:
    """Return the bytes of a static library."""
    names, places = _long_names(members)
    count = sum(len(member.symbols) for member in members)
    symbol_names = b"".join(s.encode() + b"\0" for m in members for s in m.symbols)
    index_size = 4 + 4 * count + len(symbol_names)
    offset = len(MAGIC) + 60 + _even(index_size) + (60 + _even(len(names)) if names else 0)
    offsets: list[int] = []
    for member in members:
        offsets += [offset] * len(member.symbols)
        offset += 60 + _even(len(member.data))
    index = count.to_bytes(4, "big")
    index += b"".join(o.to_bytes(4, "big") for o in offsets) + symbol_names
    parts = [MAGIC, *_member("/", index)]
    if names:
        parts += _member("//", names)
    for member in members:
        parts += _member(places.get(member.name, f"{member.name}/"), member.data)
    return b"".join(parts)


def _long_names(members: Sequence[Member]) -> tuple[bytes, Mapping[str, str]]:
    names, places = b"", dict[str, str]()
    for member in members:
        if len(member.name) > SHORT:
            places[member.name] = f"/{len(names)}"
            names += f"{member.name}/\n".encode()
    return names, places


def _member(name: str, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a member in parts, since weights may be in it: its header, data and padding."""
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n".encode()
    return header, data, b"\n" * (_even(len(data)) - len(data))


def _even(size: int) -> int:
    return size + size % 2


def read_archive(data: bytes) -> list[Member]:
    """Return the members of a library that `archive` made, without the symbols that they define."""
    members: list[Member] = []
    names, at = b"", len(MAGIC)
    while at < len(data):
        name = data[at : at + 16].decode().strip()
        size = int(data[at + 48 : at + 58])
        content = data[at + 60 : at + 60 + size]
        if name == "//":
            names = content
        elif name != "/":
            place = name.removeprefix("/")
            long = name.startswith("/")
            whole = names[int(place) :].split(b"\n")[0].decode() if long else name
            members.append(Member(whole.removesuffix("/"), content, ()))
        at += 60 + _even(size)
    return members
