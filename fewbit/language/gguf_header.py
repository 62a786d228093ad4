"""What a GGUF file says before its weights: settings, and where each tensor is.

The package `gguf` has a reader, too, which makes an array of every number and every text. A
vocabulary of 50,000 tokens takes it two seconds and 200 MB, more than all else that importing a
small model does; this one takes a tenth of a second. Tensors are mapped, and stay as they are.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = "general.alignment"
DEFAULT_ALIGNMENT = 32
MOST_DIMENSIONS = 8
NUMBERS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8",
    11: "<i8", 12: "<f8",
}  # fmt: skip
"""Kinds of values that are numbers."""
TEXT, LIST = 8, 9
PLAIN = {0: "<f4", 1: "<f2", 24: "<i1", 25: "<i2", 26: "<i4", 27: "<i8", 28: "<f8"}
"""Types of tensors that are arrays of numbers; all others are rows of blocks of bytes."""


@dataclass(frozen=True)
class GgufTensor:
    kind: int
    """The number of its type in the format."""
    shape: tuple[int, ...]
    data: Array
    """Its numbers, or its blocks as bytes, of the mapped file."""


@dataclass(frozen=True)
class GgufHeader:
    settings: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def read_header(path: Path) -> GgufHeader:
    """Map a file and read its header; what is damaged or unknown is a ValueError."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _Reader(data).read()
    except (struct.error, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(f"the header is damaged: {error}") from None


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.offset = data, 0

    def read(self) -> GgufHeader:
        if self.data[:4] != MAGIC:
            raise ValueError("it does not begin as one")
        self.offset = 4
        version = self._number("<u4")
        if version not in VERSIONS:
            raise ValueError(f"version {version} is not known, or it is of a big-endian machine")
        tensors, settings = self._number("<u8"), self._number("<u8")
        fields: dict[str, Any] = {}
        for _ in range(settings):
            name = self._text()
            if name in fields:
                raise ValueError(f"'{name}' is set twice")
            fields[name] = self._value(self._number("<u4"))
        return GgufHeader(fields, self._tensors(tensors, fields.get(ALIGNMENT, DEFAULT_ALIGNMENT)))

    def _number(self, dtype: str) -> Any:
        return self._numbers(dtype, 1)[0]

    def _numbers(self, dtype: str, count: int) -> list[Any]:
        array = np.frombuffer(self.data, dtype, count, self.offset)
        self.offset += array.nbytes
        return array.tolist()

    def _text(self) -> str:
        (length,) = struct.unpack_from("<Q", self.data, self.offset)
        begin, self.offset = self.offset + 8, self.offset + 8 + length
        if self.offset > len(self.data):
            raise ValueError("a text goes beyond the end of the file")
        return self.data[begin : self.offset].decode()

    def _value(self, kind: int) -> Any:
        if kind == TEXT:
            return self._text()
        if kind in NUMBERS:
            return self._number(NUMBERS[kind])
        if kind != LIST:
            raise ValueError(f"a setting is of the kind {kind}, which is not known")
        inner, count = self._number("<u4"), self._number("<u8")
        if inner in NUMBERS:
            return self._numbers(NUMBERS[inner], count)
        if inner == LIST:
            raise ValueError("a setting is a list of lists")
        return [self._value(inner) for _ in range(count)]

    def _tensors(self, count: int, alignment: Any) -> dict[str, GgufTensor]:
        if not isinstance(alignment, int) or alignment <= 0 or alignment & (alignment - 1):
            raise ValueError(f"an alignment of {alignment} is not possible")
        described: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for _ in range(count):
            name, dimensions = self._text(), self._number("<u4")
            if name in described or dimensions > MOST_DIMENSIONS:
                raise ValueError(
                    f"the tensor '{name}' is there twice, or of {dimensions} dimensions"
                )
            shape = tuple(reversed(self._numbers("<u8", dimensions)))
            described[name] = shape, self._number("<u4"), self._number("<u8")
        start = -(-self.offset // alignment) * alignment
        return {
            name: GgufTensor(kind, shape, self._array(name, shape, kind, start + offset))
            for name, (shape, kind, offset) in described.items()
        }

    def _array(self, name: str, shape: tuple[int, ...], kind: int, offset: int) -> Array:
        dtype = PLAIN.get(kind, "<u1")
        if kind not in PLAIN:
            shape = _shape_in_bytes(name, shape, kind)
        if offset + prod(shape) * np.dtype(dtype).itemsize > len(self.data):
            raise ValueError(f"the tensor '{name}' goes beyond the end of the file")
        return np.frombuffer(self.data, dtype, prod(shape), offset).reshape(shape)


def _shape_in_bytes(name: str, shape: tuple[int, ...], kind: int) -> tuple[int, ...]:
    """Return the shape of a tensor of blocks, counted in bytes."""
    from gguf import GGML_QUANT_SIZES

    if kind not in GGML_QUANT_SIZES or not shape:
        raise ValueError(f"the tensor '{name}' is of the type {kind}, which is not known")
    elements, size = GGML_QUANT_SIZES[kind]
    if shape[-1] % elements:
        raise ValueError(f"the tensor '{name}' has rows that are no whole blocks")
    return (*shape[:-1], shape[-1] // elements * size)
