"""Constants of a module's text as arrays, and arrays as such texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fewbit.errors import ParseError
from fewbit.frontends.stablehlo.ops import DTYPES, TensorType

Array = np.ndarray[Any, Any]

_DENSE = re.compile(r"dense<(?P<data>.*)>\s*:\s*(?P<type>tensor<[^<>]*>)", re.DOTALL)
_RESOURCE = re.compile(r"dense_resource<(?P<key>.*)>\s*:\s*(?P<type>tensor<[^<>]*>)", re.DOTALL)
_INDEX = "xindex>"


def dense_array(text: str, resources: Mapping[str, bytes] | None = None) -> Array:
    """The data of `dense<…> : tensor<…>`; splats are broadcast, so they take no memory."""
    text = text.strip()
    resource = _RESOURCE.fullmatch(text)
    if resource is not None:
        type = _type(resource["type"], text)
        key = resource["key"].strip('"')
        if resources is None or key not in resources:
            raise ParseError(f"the data of the constant '{key}' is missing")
        return _from_bytes(resources[key], type)
    match = _DENSE.fullmatch(text)
    if match is None:
        raise ParseError(f"this is not the text of a constant: {text[:60]}")
    type, data = _type(match["type"], text), match["data"]
    if not data:
        return np.zeros(type.shape, type.dtype)
    if data.startswith('"0x'):
        return _from_bytes(bytes.fromhex(data[3:-1]), type)
    if not data.startswith("["):
        return np.broadcast_to(_number(data, type), type.shape)
    words = [word for word in re.split(r"[\[\],\s]+", data) if word]
    return np.array([_number(word, type) for word in words], type.dtype).reshape(type.shape)


def _type(text: str, constant: str) -> TensorType:
    type = TensorType.parse(text.replace(_INDEX, "xi64>"))
    if type is None:
        raise ParseError(f"a constant of {text} is not read: {constant[:60]}")
    return type


def _from_bytes(data: bytes, type: TensorType) -> Array:
    if type.element == "i1" and len(data) != type.size:
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        return bits[: type.size].astype(np.bool_).reshape(type.shape)
    if len(data) == type.dtype.itemsize and type.size != 1:
        return np.broadcast_to(np.frombuffer(data, type.dtype)[0], type.shape)
    return np.frombuffer(data, type.dtype).reshape(type.shape)


def _number(word: str, type: TensorType) -> Any:
    if word in ("true", "false"):
        return type.dtype.type(word == "true")
    if word.startswith("0x") and type.is_float:
        bits = int(word, 16).to_bytes(type.dtype.itemsize, "little")
        return np.frombuffer(bits, type.dtype)[0]
    return type.dtype.type(float(word)) if type.is_float else type.dtype.type(int(word, 0))


def one_of_each(array: Array) -> Array:
    """The array with one element along dimensions in which it is broadcast."""
    return array[tuple(slice(None) if stride else slice(0, 1) for stride in array.strides)]


def is_splat(array: Array) -> bool:
    """Return whether one element stands for all, by how the array lies in memory."""
    return array.size > 0 and one_of_each(array).size == 1


def splat_of(array: Array) -> Any | None:
    """The element that all are, compared by their bits; None where they differ."""
    if array.size == 0:
        return None
    own = one_of_each(array)
    first = own.reshape(-1)[:1]
    return first[0] if own.tobytes() == first.tobytes() * own.size else None


def dense_text(array: Array, type: TensorType) -> str:
    """The text of a constant; the elements by their bits."""
    if array.size == 0:
        return f"dense<> : {type}"
    splat = splat_of(array)
    if type.element == "i1":
        if splat is not None:
            return f"dense<{'true' if splat else 'false'}> : {type}"
        return f"dense<{_nest(array)}> : {type}"
    if splat is not None:
        return f'dense<"0x{np.asarray(splat, DTYPES[type.element]).tobytes().hex()}"> : {type}'
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex()}"> : {type}'


def _nest(array: Array) -> str:
    if array.ndim == 0:
        return "true" if array else "false"
    return f"[{', '.join(_nest(part) for part in array)}]"
