"""What LLVM leaves to be done in WebAssembly's code: offsets of addresses.

A load has an offset, but LLVM's loop passes forget that an address does not wrap, and add what
they might have had there by two instructions: `i32.const c; i32.add; load`. These become a load
with c more of offset. If an address did wrap, that would be a trap, never another address.
"""

from __future__ import annotations

from fewbit.errors import PassError
from fewbit.toolchain.leb128 import read_signed, read_unsigned, unsigned

_CONST, _ADD, _VECTORS, _MISCELLANEOUS = 0x41, 0x6A, 0xFD, 0xFC
_LARGEST = 1 << 31
_LOADS, _VECTOR_LOADS = range(0x28, 0x36), (*range(0x0B), 0x5C, 0x5D)
_NUMBERS = {
    **dict.fromkeys((0x02, 0x03, 0x04), 1),  # block, loop, if
    **dict.fromkeys((0x0C, 0x0D, 0x10, 0x12, 0xD0, 0xD2), 1),  # branches, calls, references
    **dict.fromkeys((0x11, 0x13), 2),  # indirect calls
    **dict.fromkeys(range(0x20, 0x27), 1),  # locals, globals, tables
    **dict.fromkeys(range(0x28, 0x3F), 2),  # memory
    **dict.fromkeys((0x3F, 0x40, 0x41, 0x42), 1),  # size of memory, constants
    **dict.fromkeys((0x00, 0x01, 0x05, 0x0B, 0x0F, 0x1A, 0x1B, 0xD1, *range(0x45, 0xC5)), 0),
}
"""How many numbers stand behind an instruction."""
_MISCELLANEOUS_NUMBERS = {8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1}
_PLAIN_BYTES = {0x43: 4, 0x44: 8}
"""Floats."""


def fold_offsets(code: bytes) -> bytes:
    """Return the instructions of a function with constant parts of addresses in their loads."""
    out = bytearray()
    at = 0
    before: list[tuple[int, int]] = []
    """The places of the last two instructions in both codes."""
    while at < len(code):
        end = _end_of(code, at)
        constant = _added(code, before) if _is_load(code, at) else None
        if constant is None:
            before = [*before[-1:], (at, len(out))]
            out += code[at:end]
        else:
            del out[before[0][1] :]
            before = []
            out += _with_offset(code[at:end], constant)
        at = end
    return bytes(out)


def _added(code: bytes, before: list[tuple[int, int]]) -> int | None:
    """Return the constant that the last two instructions add, if they do that."""
    if len(before) < 2:
        return None
    (first, _), (second, _) = before
    if code[first] != _CONST or code[second] != _ADD:
        return None
    value, _ = read_signed(code, first + 1)
    return value if value >= 0 else None


def _is_load(code: bytes, at: int) -> bool:
    if code[at] == _VECTORS:
        return read_unsigned(code, at + 1)[0] in _VECTOR_LOADS
    return code[at] in _LOADS


def _with_offset(load: bytes, more: int) -> bytes:
    at = read_unsigned(load, 1)[1] if load[0] == _VECTORS else 1
    _, at = read_unsigned(load, at)  # alignment
    offset, end = read_unsigned(load, at)
    if offset + more >= _LARGEST:
        raise PassError("an address is beyond the memory of WebAssembly")
    return load[:at] + unsigned(offset + more) + load[end:]


def _end_of(code: bytes, at: int) -> int:
    """Return where an instruction ends."""
    opcode = code[at]
    at += 1
    if opcode == _VECTORS:
        return _end_of_vectors(code, at)
    if opcode == _MISCELLANEOUS:
        kind, at = read_unsigned(code, at)
        return _skip(code, at, _MISCELLANEOUS_NUMBERS.get(kind, 0))
    if opcode in _PLAIN_BYTES:
        return at + _PLAIN_BYTES[opcode]
    if opcode in (0x0E, 0x1C):  # a table of branches, a selection with types
        count, at = read_unsigned(code, at)
        return _skip(code, at, count + (opcode == 0x0E))
    if opcode not in _NUMBERS:
        raise PassError(f"WebAssembly has an instruction that is not known here: {opcode:#x}")
    return _skip(code, at, _NUMBERS[opcode])


def _end_of_vectors(code: bytes, at: int) -> int:
    kind, at = read_unsigned(code, at)
    if kind < 0x0C or kind in (0x5C, 0x5D):
        return _skip(code, at, 2)
    if kind in (0x0C, 0x0D):
        return at + 16
    if 0x15 <= kind <= 0x22:
        return at + 1
    if 0x54 <= kind <= 0x5B:
        return _skip(code, at, 2) + 1
    return at


def _skip(code: bytes, at: int, count: int) -> int:
    for _ in range(count):
        _, at = read_unsigned(code, at)
    return at
