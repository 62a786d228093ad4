"""The bytes of a GGUF file before its weights, and where each of these goes.

Sizes are known before any weight is read, so the header is written first and weights follow one by
one, in their order.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from fewbit.language.gguf_header import DEFAULT_ALIGNMENT, LIST, MAGIC, TEXT, VERSIONS

Setting = bool | int | float | str | list[str] | list[int] | list[float]
U32, I32, F32, BOOL = 4, 5, 6, 7


@dataclass(frozen=True)
class PlannedTensor:
    name: str
    shape: tuple[int, ...]
    kind: int
    """The number of its type in the format."""

    @property
    def nbytes(self) -> int:
        from gguf import GGML_QUANT_SIZES

        elements, size = GGML_QUANT_SIZES[self.kind]
        return prod(self.shape) // elements * size


def header(settings: Mapping[str, Setting], tensors: Sequence[PlannedTensor]) -> bytes:
    """Return all that comes before the weights, which are padded one by one."""
    parts = [MAGIC, struct.pack("<IQQ", VERSIONS[-1], len(tensors), len(settings))]
    for name, value in settings.items():
        parts += [_text(name), _value(value)]
    offset = 0
    for tensor in tensors:
        sizes = struct.pack(f"<I{len(tensor.shape)}Q", len(tensor.shape), *reversed(tensor.shape))
        parts += [_text(tensor.name), sizes, struct.pack("<IQ", tensor.kind, offset)]
        offset += tensor.nbytes + len(padding(tensor.nbytes))
    data = b"".join(parts)
    return data + padding(len(data))


def padding(size: int) -> bytes:
    """Return what follows so many bytes, so that the next begin where they may."""
    return bytes(-size % DEFAULT_ALIGNMENT)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Setting) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", TEXT) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    kind, data = _items(value)
    return struct.pack("<IIQ", LIST, kind, len(value)) + data


def _items(values: Sequence[Any]) -> tuple[int, bytes]:
    if all(isinstance(value, str) for value in values):
        return TEXT, b"".join(map(_text, values))
    if all(isinstance(value, int) for value in values):
        return I32, np.array(values, "<i4").tobytes()
    return F32, np.array(values, "<f4").tobytes()
