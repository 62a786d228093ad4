"""Writing relocatable ELF objects of one text section: what an assembler hands to a linker.

LLD decides what goes where; we only say the code, the symbols and the places that wait for them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

FloatAbi = Literal["soft", "single", "double"]
_FLAGS = {"soft": 0, "single": 2, "double": 4}

_PROGBITS, _SYMTAB, _STRTAB, _RELA = 1, 2, 3, 4
_ALLOC_EXECUTE, _INFO_LINK = 6, 0x40
_LOCAL, _GLOBAL = 0, 1
_NO_TYPE, _FUNCTION = 0, 2
_TEXT = 1
RELOCATABLE, RISCV = 1, 243


@dataclass(frozen=True)
class Relocation:
    offset: int
    kind: int
    symbol: str


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    data: bytes
    flags: int = 0
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0


def write(
    xlen: int,
    text: bytes,
    defined: Mapping[str, int],
    exported: AbstractSet[str],
    relocations: Sequence[Relocation],
    float_abi: FloatAbi = "soft",
) -> bytes:
    """Return the object's bytes; symbols that nothing defines are left undefined."""
    strings = _Strings()
    local = [name for name in defined if name not in exported]
    missing = sorted({r.symbol for r in relocations} - set(defined))
    order = [*local, *(name for name in defined if name in exported), *missing]
    ends = _ends(defined, exported, len(text))
    table = _symbol(xlen, 0, 0, 0, _LOCAL, _NO_TYPE, 0)
    for name in order:
        function = name in exported
        table += _symbol(
            xlen, strings.add(name), defined.get(name, 0), ends.get(name, 0),
            _LOCAL if name in local else _GLOBAL, _FUNCTION if function else _NO_TYPE,
            _TEXT if name in defined else 0,
        )  # fmt: skip
    index = {name: i for i, name in enumerate(order, 1)}
    rela = b"".join(_relocation(xlen, r, index[r.symbol]) for r in relocations)
    word = xlen // 8
    sections = [
        _Section("", 0, b"", align=0),
        _Section(".text", _PROGBITS, text, _ALLOC_EXECUTE, align=4),
        _Section(".rela.text", _RELA, rela, _INFO_LINK, 3, _TEXT, word, 3 * word),
        _Section(".symtab", _SYMTAB, table, 0, 4, 1 + len(local), word, 16 if xlen == 32 else 24),
        _Section(".strtab", _STRTAB, strings.data),
        _Section(".note.GNU-stack", _PROGBITS, b""),
    ]
    return _file(xlen, sections, _FLAGS[float_abi])


def _file(xlen: int, sections: list[_Section], flags: int) -> bytes:
    names = _Strings()
    sections = [*sections, _Section(".shstrtab", _STRTAB, b"")]
    at = [names.add(section.name) for section in sections]
    sections[-1] = _Section(".shstrtab", _STRTAB, names.data)
    header = 52 if xlen == 32 else 64
    body, headers = b"", b""
    form = "<10I" if xlen == 32 else "<IIQQQQIIQQ"
    for section, name in zip(sections, at, strict=True):
        body += bytes(-(header + len(body)) % 16)
        offset = header + len(body) if section.kind else 0
        headers += struct.pack(
            form, name, section.kind, section.flags, 0, offset, len(section.data),
            section.link, section.info, section.align, section.entry,
        )  # fmt: skip
        body += section.data
    body += bytes(-(header + len(body)) % 16)
    ident = b"\x7fELF" + bytes([1 if xlen == 32 else 2, 1, 1]) + bytes(9)
    words = "<HHIIIIIHHHHHH" if xlen == 32 else "<HHIQQQIHHHHHH"
    fields = struct.pack(
        words, RELOCATABLE, RISCV, 1, 0, 0, header + len(body), flags, header, 0, 0,
        40 if xlen == 32 else 64, len(sections), len(sections) - 1,
    )  # fmt: skip
    return ident + fields + body + headers


def _symbol(
    xlen: int, name: int, value: int, size: int, binding: int, kind: int, section: int
) -> bytes:
    info = binding << 4 | kind
    if xlen == 32:
        return struct.pack("<IIIBBH", name, value, size, info, 0, section)
    return struct.pack("<IBBHQQ", name, info, 0, section, value, size)


def _relocation(xlen: int, relocation: Relocation, symbol: int) -> bytes:
    if xlen == 32:
        return struct.pack("<IIi", relocation.offset, symbol << 8 | relocation.kind, 0)
    return struct.pack("<QQq", relocation.offset, symbol << 32 | relocation.kind, 0)


def _ends(defined: Mapping[str, int], exported: AbstractSet[str], end: int) -> dict[str, int]:
    """Return each function's size: it reaches to the next one."""
    starts = sorted({defined[name] for name in exported} | {end})
    return {
        name: next(s for s in starts if s > defined[name]) - defined[name]
        for name in exported
        if defined[name] < end
    }


class _Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        if not text:
            return 0
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at
