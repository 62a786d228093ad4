"""Packing of activations at run time: bytes to fields of 1, 2, 4 or 8 bits, in LLVM IR.

Four bytes are squeezed at once, where they can be by a multiplication that moves each to its place:
no two parts of the result overlap. A row has whole steps, with zeros behind its end.
"""

from __future__ import annotations

from fewbit.kernels.emit import Function, Value
from fewbit.toolchain.isa import Isa

CHUNK_BYTES = 4


def load_chunk(f: Function, pointer: Value, index: int) -> Value:
    """Load four bytes; pointers to them are aligned."""
    return f.load("i32", pointer, index, align=CHUNK_BYTES)


def store_chunk(f: Function, value: Value, pointer: Value, index: int) -> None:
    f.store(value, pointer, index, align=CHUNK_BYTES)


def pack_rows(isa: Isa, bits: int, chunks: int) -> Function:
    """Pack steps of `chunks` contiguous chunks each, `stride` bytes apart."""
    f = Function(isa, f"pack{bits}_{chunks}", "ptr x, ptr out, index steps, index stride")
    x, out, steps, stride = f.parameters
    with f.loop(0, steps, carried=[x, out], hot=True) as loop:
        x, out = loop.carried
        for number in range(chunks):
            store_chunk(f, _chunk(f, x, number * 8 // bits, bits), out, number)
        loop.carry(f.at(x, chunks * CHUNK_BYTES * 8 // bits, "i8"), f.at(out, stride, "i8"))
    return f


def _chunk(f: Function, x: Value, first: int, bits: int) -> Value:
    """Return a chunk of fields from the fours of bytes `first` and on."""
    parts = [_compress(load_chunk(f, x, first + i), bits) for i in range(8 // bits)]
    whole = parts[0]
    for number, part in enumerate(parts[1:], 1):
        whole = whole | part.shift_left(number * 4 * bits)
    return whole


def _compress(four: Value, bits: int) -> Value:
    """Return the low bits of four bytes, side by side; of 1 bit, the sign."""
    if bits == 8:
        return four
    if bits == 4:
        low = four & 0x0F0F0F0F
        pairs = (low | low.shift_right(4)) & 0x00FF00FF
        return (pairs | pairs.shift_right(8)) & 0xFFFF
    if bits == 2:
        low = four & 0x03030303
        return (low * (1 << 24 | 1 << 18 | 1 << 12 | 1 << 6)).shift_right(24)
    signs = four.shift_right(7) & 0x01010101
    moved = signs * (1 << 24 | 1 << 17 | 1 << 10 | 1 << 3)
    return moved.shift_right(24) & 0xF
