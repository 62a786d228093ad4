"""Blocks of few bits in a GGUF file, as the integers, scales and offsets that they hold.

A row of a tensor is blocks of 32 elements, or super-blocks of 256. Every type here is one of ours:
groups of integers with a scale, and perhaps an offset beside integers that count from 0. Nothing is
rounded: f16 scales become float32, those of a super-block are products of float32, and dequantizing
gives what the package `gguf` gives, bit by bit. Other types (of floats, of code books) have no
integers of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.numerics import Quantized, Width

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]
SUPER = 256
"""Elements of a super-block."""


@dataclass(frozen=True)
class Groups:
    """What blocks hold: integers [blocks, elements], and for each block's groups a scale."""

    numbers: NDArray[Any]
    scale: Floats
    offset: Floats | None = None
    """With it, the integers count from 0."""


@dataclass(frozen=True)
class BlockType:
    """A type of blocks, by its size in bytes and in elements."""

    width: Width
    elements: int
    size: int
    read: Callable[[Bytes], Groups]


def holds_integers(kind: int, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor is a matrix of integers in whole blocks."""
    return kind in TYPES and len(shape) == 2 and shape[1] % TYPES[kind].elements == 0


def read_blocks(data: Bytes, kind: int, shape: tuple[int, ...]) -> Quantized:
    """Return a matrix of a file with its own integers."""
    known = TYPES[kind]
    groups = known.read(np.ascontiguousarray(data).view(np.uint8).reshape(-1, known.size))
    lowest = 0 if groups.offset is None else known.width.qmin
    by_row = (shape[0], -1)
    return Quantized(
        groups.numbers.reshape(shape).astype(np.int8) + np.int8(lowest),
        groups.scale.reshape(by_row),
        None,
        known.width,
        None if groups.offset is None else groups.offset.reshape(by_row),
    )


def _f16(fields: Bytes) -> Floats:
    """Return little-endian halves, two bytes each, as float32."""
    return np.ascontiguousarray(fields).view("<f2").astype(np.float32)


def _nibbles(fields: Bytes, together: int) -> Bytes:
    """Return numbers of 4 bits: of so many bytes, first all lower halves, then the higher ones."""
    parts = fields.reshape(len(fields), -1, 1, together)
    return (parts >> np.array([[0], [4]], np.uint8) & np.uint8(15)).reshape(len(fields), -1)


def _fifth_bits(fields: Bytes) -> Bytes:
    """Return the bits of 4 bytes, from the lowest, as 16 or 0."""
    return np.unpackbits(np.ascontiguousarray(fields), axis=1, bitorder="little") << np.uint8(4)


def _q4_0(block: Bytes) -> Groups:
    return Groups(_nibbles(block[:, 2:], 16).astype(np.int8) - 8, _f16(block[:, :2]))


def _q4_1(block: Bytes) -> Groups:
    return Groups(_nibbles(block[:, 4:], 16), _f16(block[:, :2]), _f16(block[:, 2:4]))


def _q5_0(block: Bytes) -> Groups:
    numbers = _nibbles(block[:, 6:], 16) | _fifth_bits(block[:, 2:6])
    return Groups(numbers.astype(np.int8) - 16, _f16(block[:, :2]))


def _q5_1(block: Bytes) -> Groups:
    numbers = _nibbles(block[:, 8:], 16) | _fifth_bits(block[:, 4:8])
    return Groups(numbers, _f16(block[:, :2]), _f16(block[:, 2:4]))


def _q8_0(block: Bytes) -> Groups:
    return Groups(np.ascontiguousarray(block[:, 2:]).view(np.int8), _f16(block[:, :2]))


def _pairs(fields: Bytes) -> Bytes:
    """Return numbers of 2 bits: of 32 bytes, first all lowest ones, and so on."""
    parts = fields.reshape(len(fields), -1, 1, 32)
    shifted = parts >> np.array([[0], [2], [4], [6]], np.uint8)
    return (shifted & np.uint8(3)).reshape(len(fields), -1)


def _bits(fields: Bytes) -> Bytes:
    """Return single bits: of 32 bytes, first all lowest ones, and so on."""
    planes = np.unpackbits(fields.reshape(-1, 32, 1), axis=2, bitorder="little")
    return planes.transpose(0, 2, 1).reshape(len(fields), SUPER)


def _q2_k(block: Bytes) -> Groups:
    scales, numbers = block[:, :16], _pairs(block[:, 16:80])
    d, lowest = _f16(block[:, 80:82]), _f16(block[:, 82:84])
    scale = d * (scales & 15).astype(np.float32)
    return Groups(numbers, scale, -(lowest * (scales >> 4).astype(np.float32)))


def _q3_k(block: Bytes) -> Groups:
    third = _bits(block[:, :32])
    numbers = _pairs(block[:, 32:96]).astype(np.int8) - (third ^ 1).astype(np.int8) * 4
    packed = block[:, 96:108]
    low, high = packed[:, :8], packed[:, 8:]
    low = (low[:, None] >> np.array([[0], [4]], np.uint8) & 15).reshape(-1, 16)
    high = (high[:, None] >> np.array([[0], [2], [4], [6]], np.uint8) & 3).reshape(-1, 16)
    scales = (low | high << np.uint8(4)).astype(np.int8) - 32
    return Groups(numbers, _f16(block[:, 108:110]) * scales.astype(np.float32))


def _scales_and_lowest(block: Bytes) -> tuple[Floats, Floats]:
    """Return the scales and offsets of 8 groups, each of 6 bits, of the first 16 bytes."""
    d, lowest = _f16(block[:, :2]), _f16(block[:, 2:4])
    first, second, third = block[:, 4:8], block[:, 8:12], block[:, 12:16]
    scales = np.concatenate([first & 63, third & 15 | first >> 2 & 48], axis=1)
    offsets = np.concatenate([second & 63, third >> 4 | second >> 2 & 48], axis=1)
    return d * scales.astype(np.float32), -(lowest * offsets.astype(np.float32))


def _q4_k(block: Bytes) -> Groups:
    return Groups(_nibbles(block[:, 16:], 32), *_scales_and_lowest(block))


def _q5_k(block: Bytes) -> Groups:
    numbers = _nibbles(block[:, 48:], 32) | _bits(block[:, 16:48]) << np.uint8(4)
    return Groups(numbers, *_scales_and_lowest(block))


def _q6_k(block: Bytes) -> Groups:
    low = _nibbles(block[:, :128], 64)
    numbers = (low | _pairs(block[:, 128:192]) << np.uint8(4)).astype(np.int8) - 32
    scales = np.ascontiguousarray(block[:, 192:208]).view(np.int8).astype(np.float32)
    return Groups(numbers, _f16(block[:, 208:210]) * scales)


def _trits(fields: Bytes, count: int) -> Bytes:
    """Return digits of base 3, the highest first, `count` of each byte: all firsts come first."""
    powers = np.array([3**i for i in range(count)], np.uint8)
    parts = fields[:, None] * powers[:, None]
    return (parts.astype(np.uint16) * 3 >> 8).astype(np.uint8).reshape(len(fields), -1)


def _tq1_0(block: Bytes) -> Groups:
    parts = [_trits(block[:, :32], 5), _trits(block[:, 32:48], 5), _trits(block[:, 48:52], 4)]
    return Groups(np.concatenate(parts, axis=1).astype(np.int8) - 1, _f16(block[:, 52:54]))


def _tq2_0(block: Bytes) -> Groups:
    return Groups(_pairs(block[:, :64]).astype(np.int8) - 1, _f16(block[:, 64:66]))


TYPES = {
    2: BlockType(Width.of(4), 32, 18, _q4_0),
    3: BlockType(Width.of(4), 32, 20, _q4_1),
    6: BlockType(Width.of(5), 32, 22, _q5_0),
    7: BlockType(Width.of(5), 32, 24, _q5_1),
    8: BlockType(Width.of(8), 32, 34, _q8_0),
    10: BlockType(Width.of(2), SUPER, 84, _q2_k),
    11: BlockType(Width.of(3), SUPER, 110, _q3_k),
    12: BlockType(Width.of(4), SUPER, 144, _q4_k),
    13: BlockType(Width.of(5), SUPER, 176, _q5_k),
    14: BlockType(Width.of(6), SUPER, 210, _q6_k),
    34: BlockType(Width.of(1.58), SUPER, 54, _tq1_0),
    35: BlockType(Width.of(1.58), SUPER, 66, _tq2_0),
}
"""Types by their numbers in a file."""
