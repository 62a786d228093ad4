"""Packing of b-bit integers along the last axis, least significant bits first.

Eight values make one little-endian 64-bit word, a value a byte; packing squeezes the 8 - b unused
bits out of every byte in three steps (pairs of fields, then fours, then eights), and the low b
bytes of the word are the packed bytes. One algorithm thus serves every width, crossing byte
boundaries or not, at memory speed. Work goes in blocks that stay in cache. A row is padded with
zero bits to a byte, or with zero fields to `align` elements first, which for 8, 4, 2 and 1 bits
(ternary included) and align=32 is MiCo's file layout. One bit stores 1 for -1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fewbit.errors import ShapeError, WidthError
from fewbit.numerics.arrays import Int8Array, IntArray, UInt8Array, integers
from fewbit.numerics.widths import Width, WidthLike

_Words = npt.NDArray[np.uint64]
_Rows = tuple[int, int, int]
_WORD = np.dtype("<u8")
_BLOCK = 1 << 17


def row_bytes(k: int, width: WidthLike, *, align: int = 1) -> int:
    """Return the bytes of one packed row of k values."""
    if k < 1 or align < 1:
        raise ShapeError(f"a row of {k} values aligned to {align} cannot be packed")
    return _up(_up(k, align) * Width.of(width).bits, 8) // 8


def pack(values: npt.ArrayLike, width: WidthLike, *, align: int = 1) -> UInt8Array:
    """Pack integers [..., K] of the width's range into bytes [..., row_bytes(K)]."""
    array = integers(values, "values to pack")
    width = Width.of(width)
    k = _last(array.shape)
    packed = np.zeros((*array.shape[:-1], row_bytes(k, width, align=align)), np.uint8)
    count, length, size = _rows(array.shape, packed.shape[-1], width.bits)
    rows, row_out = array.reshape(count, length), packed.reshape(count, size)
    for row, column in _blocks(count, length):
        block = rows[row, column]
        if not width.holds(block):
            raise WidthError(
                f"a value does not fit {width} bits: the values span {array.min()}..{array.max()}",
                hint=f"{width} bits hold {width.qmin}..{width.qmax}"
                + (" without 0" if width.is_binary else ""),
            )
        packed_block = _pack_block(block, width)
        first = column.start * width.bits // 8
        last = min(first + packed_block.shape[1], row_out.shape[1])
        row_out[row, first:last] = packed_block[:, : last - first]
    return packed


def unpack(packed: npt.ArrayLike, width: WidthLike, k: int, *, align: int = 1) -> Int8Array:
    """Unpack bytes [..., row_bytes(k)] into integers [..., k]; padding is ignored.

    Bytes of 8 bits are the integers: those are the same memory.
    """
    array = np.asarray(packed)
    width = Width.of(width)
    expected = row_bytes(k, width, align=align)
    if array.dtype != np.uint8:
        raise ShapeError(f"packed data are bytes (uint8), not {array.dtype}")
    if _last(array.shape) != expected:
        raise ShapeError(
            f"packed rows have {array.shape[-1]} bytes, but {k} values of {width} bits take "
            f"{expected}",
            hint="the width, K or alignment is not the one the data were packed with",
        )
    if width.bits == 8 and expected == k:
        return array.view(np.int8)
    values = np.empty((*array.shape[:-1], k), np.int8)
    count, length, size = _rows(values.shape, expected, width.bits)
    rows, row_in = values.reshape(count, length), array.reshape(count, size)
    for row, column in _blocks(count, length):
        first = column.start * width.bits // 8
        last = _up(column.stop * width.bits, 8) // 8
        fields = _unpack_block(row_in[row, first:last], width)
        rows[row, column] = fields[:, : column.stop - column.start]
    if width.is_ternary and not width.holds(values):
        raise WidthError(
            "packed ternary data hold the field 0b10, which is no ternary value",
            hint="the data are damaged, or were packed as 2 bits",
        )
    return values


def _last(shape: tuple[int, ...]) -> int:
    if not shape:
        raise ShapeError("a scalar has no last axis to pack along")
    return shape[-1]


def _rows(shape: tuple[int, ...], size: int, bits: int) -> _Rows:
    """Return rows, values a row and bytes a row; one row where rows follow without padding."""
    rows, k = math.prod(shape[:-1]), shape[-1]
    return (1, rows * k, rows * size) if size * 8 == k * bits else (rows, k, size)


def _blocks(rows: int, k: int) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of about `_BLOCK` values that begin at a multiple of 8 within their rows."""
    height = max(1, _BLOCK // _up(max(k, 1), 8))
    for top in range(0, rows, height):
        for left in range(0, k, _BLOCK):
            yield slice(top, min(top + height, rows)), slice(left, min(left + _BLOCK, k))


def _pack_block(block: IntArray, width: Width) -> UInt8Array:
    """Pack values [rows, columns] into bytes [rows, b * ceil(columns / 8)]; fewer at 8 bits."""
    if width.bits == 8:
        return block.astype(np.int8).view(np.uint8)
    rows, columns = block.shape
    fields = np.zeros((rows, _up(columns, 8)), np.int8)
    fields[:, :columns] = block
    if width.is_binary:
        np.less(fields, 0, out=fields.view(np.bool_))
    words = fields.view(_WORD)
    words &= _mask(width.bits, 8)
    for lane in (8, 16, 32):
        used = lane * width.bits // 8
        high = words & (_mask(used, 2 * lane) << np.uint64(lane))
        words ^= high
        high >>= np.uint64(lane - used)
        words |= high
    return _low_bytes(words, width.bits).reshape(rows, -1)


def _unpack_block(block: UInt8Array, width: Width) -> Int8Array:
    """Return the values [rows, 8 * words] of packed bytes; a row's last word may be incomplete."""
    if width.bits == 8:
        return block.view(np.int8)
    rows, size = block.shape
    whole = np.zeros((rows, _up(size, width.bits)), np.uint8)
    whole[:, :size] = block
    words = _from_low_bytes(whole.reshape(rows, -1, width.bits))
    for lane in (32, 16, 8):
        used = lane * width.bits // 8
        high = words & (_mask(used, 2 * lane) << np.uint64(used))
        words ^= high
        high <<= np.uint64(lane - used)
        words |= high
    return _sign_extend(words.view(np.int8), width)


def _low_bytes(words: _Words, count: int) -> UInt8Array:
    """Return the low `count` bytes of every word, [..., count].

    They are copied byte by byte, which numpy does fast.
    """
    source = words.view(np.uint8).reshape(*words.shape, 8)
    low = np.empty((*words.shape, count), np.uint8)
    for byte in range(count):
        low[..., byte] = source[..., byte]
    return low


def _from_low_bytes(low: UInt8Array) -> _Words:
    """Return words [...] whose low bytes are given, [..., count]."""
    words = np.zeros(low.shape[:-1], _WORD)
    target = words.view(np.uint8).reshape(*words.shape, 8)
    for byte in range(low.shape[-1]):
        target[..., byte] = low[..., byte]
    return words


def _sign_extend(fields: Int8Array, width: Width) -> Int8Array:
    """Turn fields 0 .. 2^b - 1 into the values they stand for, in place."""
    if width.is_binary:
        fields *= np.int8(-2)
        fields += np.int8(1)
        return fields
    sign = np.uint8(1 << (width.bits - 1))
    unsigned = fields.view(np.uint8)
    unsigned ^= sign
    unsigned -= sign
    return fields


def _mask(bits: int, lane: int) -> np.uint64:
    """Return the low `bits` bits of every lane of a word."""
    return np.uint64(sum(((1 << bits) - 1) << start for start in range(0, 64, lane)))


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
