"""How values of IR types are held in numpy.

A tensor is an array, a scalar a numpy scalar. Signless and signed integers are held sign-extended
in the next larger of int8, int16, int32 and int64, and every op wraps its result to the width of
its type, so equal values always have equal bits; i1 is bool, unsigned types are uint. `index` is
int64. The 16-bit and smaller floats are numpy's and ml_dtypes'. Arrays are never written to once
computed, so views and broadcasts stand for tensors as well as copies do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float4E2M1FNType,
    Float6E2M3FNType,
    Float6E3M2FNType,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute

from fewbit.errors import InterpretError

Value: TypeAlias = NDArray[Any]
"""A tensor or a scalar; numpy lets both be used alike, and so do we."""

DType: TypeAlias = np.dtype[Any]

TypeT = TypeVar("TypeT", bound=Attribute)

_FLOATS: dict[type[Attribute], Any] = {
    BFloat16Type: ml_dtypes.bfloat16,
    Float16Type: np.float16,
    Float32Type: np.float32,
    Float64Type: np.float64,
    Float8E3M4Type: ml_dtypes.float8_e3m4,
    Float8E4M3Type: ml_dtypes.float8_e4m3,
    Float8E4M3B11FNUZType: ml_dtypes.float8_e4m3b11fnuz,
    Float8E4M3FNType: ml_dtypes.float8_e4m3fn,
    Float8E4M3FNUZType: ml_dtypes.float8_e4m3fnuz,
    Float8E5M2Type: ml_dtypes.float8_e5m2,
    Float8E5M2FNUZType: ml_dtypes.float8_e5m2fnuz,
    Float8E8M0FNUType: ml_dtypes.float8_e8m0fnu,
    Float6E2M3FNType: ml_dtypes.float6_e2m3fn,
    Float6E3M2FNType: ml_dtypes.float6_e3m2fn,
    Float4E2M1FNType: ml_dtypes.float4_e2m1fn,
}

_DTYPES: dict[type[Attribute], Callable[[Any], DType]] = {}


def register_type(
    *types: type[TypeT],
) -> Callable[[Callable[[TypeT], DType]], Callable[[TypeT], DType]]:
    """Declare how values of a dialect's own scalar or element types are held."""

    def add(dtype: Callable[[TypeT], DType]) -> Callable[[TypeT], DType]:
        for type in types:
            _DTYPES[type] = dtype
        return dtype

    return add


@register_type(IntegerType)
def _integer_dtype(type: IntegerType) -> DType:
    width = type.width.data
    if not 1 <= width <= 64:
        raise InterpretError(f"integers of {width} bits are not interpreted: {type}")
    if type.signedness.data is Signedness.UNSIGNED:
        return np.dtype(f"uint{_storage_bits(width)}")
    return np.dtype(bool) if width == 1 else np.dtype(f"int{_storage_bits(width)}")


@register_type(IndexType)
def _index_dtype(type: IndexType) -> DType:
    return np.dtype(np.int64)


@register_type(*_FLOATS)
def _float_dtype(type: Attribute) -> DType:
    return np.dtype(_FLOATS[type.__class__])


def _storage_bits(width: int) -> int:
    return max(8, 1 << (width - 1).bit_length())


@lru_cache(maxsize=4096)
def dtype_of(type: Attribute) -> DType:
    """Return the numpy type that holds values, or elements of tensors, of `type`."""
    element = element_type(type)
    dtype = _DTYPES.get(element.__class__)
    if dtype is None:
        raise InterpretError(f"no numpy type is registered for the IR type {element}")
    return dtype(element)


def element_type(type: Attribute) -> Attribute:
    if isinstance(type, TensorType | UnrankedTensorType | VectorType):
        return cast(TensorType[Attribute], type).element_type
    return type


@lru_cache(maxsize=4096)
def shape_of(type: Attribute) -> tuple[int | None, ...] | None:
    """Return sizes, None where dynamic; () for a scalar, None for a tensor of unknown rank."""
    if isinstance(type, UnrankedTensorType):
        return None
    if isinstance(type, TensorType | VectorType):
        return tuple(None if size == DYNAMIC_INDEX else size for size in type.get_shape())
    return ()


def bit_width(type: Attribute) -> int:
    """Return the width of an integer type, or of integer elements; `index` has 64 bits."""
    element = element_type(type)
    return element.bitwidth if isinstance(element, IntegerType) else 64


def index_value(number: int) -> Value:
    """Return a value of type `index`."""
    return cast(Value, np.int64(number))


def describe(value: Value) -> str:
    """Return `float32[1, 4]`, for messages."""
    return f"{value.dtype}{list(value.shape)}"


def mismatch(value: Value, type: Attribute) -> str | None:
    """Return what keeps `value` from being of `type`, or None."""
    shape = shape_of(type)
    if value.dtype != dtype_of(type):
        return f"expected {type}, held as {dtype_of(type)}; given {describe(value)}"
    if shape is None or shape == value.shape:
        return None
    fits = len(shape) == value.ndim and all(
        size is None or size == given for size, given in zip(shape, value.shape, strict=True)
    )
    return None if fits else f"expected {type}, given {describe(value)}"


def poison(type: Attribute) -> Value:
    """Return the scalar that fills what a program must not read: NaN, or the smallest integer."""
    dtype = dtype_of(type)
    if dtype.kind == "b":
        return cast(Value, np.False_)
    if dtype.kind not in "iu":
        return dtype.type(np.nan)
    width = min(bit_width(type), 8 * dtype.itemsize)
    return dtype.type(-1 << (width - 1) if dtype.kind == "i" else 0)
