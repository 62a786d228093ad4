"""ONNX's element types, and the torch types that hold their values inside a traced graph.

Programs have no unsigned tensors to compute with. An unsigned value is held in a wider signed type
and wrapped after arithmetic; 64 bits have no wider type, and are held as they are, for those ops
only in which the sign does not matter. Types of 2 and 4 bits are held in bytes, at the boundary of
a program as well; floats of 4 and 8 bits in float32, and at the boundary as their bits in uint8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnx import TensorProto, numpy_helper
from torch import Tensor

from fewbit.base.typed_torch import from_numpy
from fewbit.errors import UnsupportedError

FLOAT: int = TensorProto.FLOAT
DOUBLE: int = TensorProto.DOUBLE
FLOAT16: int = TensorProto.FLOAT16
BFLOAT16: int = TensorProto.BFLOAT16
INT8: int = TensorProto.INT8
INT16: int = TensorProto.INT16
INT32: int = TensorProto.INT32
INT64: int = TensorProto.INT64
UINT8: int = TensorProto.UINT8
UINT16: int = TensorProto.UINT16
UINT32: int = TensorProto.UINT32
UINT64: int = TensorProto.UINT64
INT4: int = TensorProto.INT4
UINT4: int = TensorProto.UINT4
INT2: int = TensorProto.INT2
UINT2: int = TensorProto.UINT2
BOOL: int = TensorProto.BOOL
FLOAT8E8M0: int = TensorProto.FLOAT8E8M0

HELD: dict[int, torch.dtype] = {
    FLOAT: torch.float32,
    DOUBLE: torch.float64,
    FLOAT16: torch.float16,
    BFLOAT16: torch.bfloat16,
    INT8: torch.int8,
    INT16: torch.int16,
    INT32: torch.int32,
    INT64: torch.int64,
    BOOL: torch.bool,
    UINT8: torch.int32,
    UINT16: torch.int32,
    UINT32: torch.int64,
    UINT64: torch.int64,
    INT4: torch.int8,
    UINT4: torch.int8,
    INT2: torch.int8,
    UINT2: torch.int8,
}
SMALL_FLOATS: tuple[int, ...] = (
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
    FLOAT8E8M0,
    TensorProto.FLOAT4E2M1,
)
UNSIGNED: dict[int, torch.dtype] = {
    UINT8: torch.uint8,
    UINT16: torch.uint16,
    UINT32: torch.uint32,
    UINT64: torch.uint64,
}
"""Unsigned types at the boundary of a program."""

BITS: dict[int, int] = {
    UINT8: 8,
    UINT16: 16,
    UINT32: 32,
    UINT64: 64,
    UINT4: 4,
    UINT2: 2,
    INT8: 8,
    INT16: 16,
    INT32: 32,
    INT64: 64,
    INT4: 4,
    INT2: 2,
}
_UNSIGNED_BITS = {UINT8, UINT16, UINT32, UINT64, UINT4, UINT2}
_NATURAL = {HELD[kind]: kind for kind in (*range(1, 17),) if kind in HELD and kind not in UNSIGNED}


def name_of(kind: int) -> str:
    return TensorProto.DataType.Name(kind).lower()  # pyright: ignore[reportArgumentType]


def held_in(kind: int) -> torch.dtype:
    if kind in SMALL_FLOATS:
        return torch.float32
    if kind not in HELD:
        raise UnsupportedError(f"tensors of {name_of(kind)} are not imported")
    return HELD[kind]


def boundary_dtype(kind: int) -> torch.dtype:
    """Return what a program takes and gives for tensors of a type."""
    if kind in SMALL_FLOATS:
        return torch.uint8
    return UNSIGNED.get(kind) or held_in(kind)


def natural_kind(dtype: torch.dtype) -> int:
    """The type that is held as itself."""
    return _NATURAL[dtype]


def is_float(kind: int) -> bool:
    return held_in(kind).is_floating_point


def is_unsigned(kind: int) -> bool:
    return kind in _UNSIGNED_BITS


def limits(kind: int) -> tuple[int, int]:
    """The least and greatest integer of a type."""
    bits = BITS[kind]
    return (0, 2**bits - 1) if is_unsigned(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wrap_around(tensor: Tensor, kind: int) -> Tensor:
    """The value of the type that has the same low bits, in what holds it."""
    held = HELD[kind]
    if kind not in BITS or torch.iinfo(held).bits == BITS[kind]:
        return tensor if tensor.dtype is held else tensor.to(held)
    bits = BITS[kind]
    if torch.iinfo(tensor.dtype).bits <= bits and not is_unsigned(kind):
        return tensor.to(held)
    wide = tensor if torch.iinfo(tensor.dtype).bits > 16 else tensor.to(torch.int32)
    low = wide & (2**bits - 1)
    if not is_unsigned(kind):
        low = torch.where(low >= 2 ** (bits - 1), low - 2**bits, low)
    return low.to(held)


def tensor_of(proto: TensorProto, folder: str = "") -> Tensor:
    """The values of a constant in the type that holds them."""
    held = held_in(proto.data_type)
    array: Any = numpy_helper.to_array(proto, folder)
    return array_held(array, proto.data_type, held)


def array_held(array: Any, kind: int, held: torch.dtype | None = None) -> Tensor:
    held = held or held_in(kind)
    if kind == BFLOAT16:
        return from_numpy(array.astype(np.float32).copy()).to(torch.bfloat16)
    if kind == UINT64:
        return from_numpy(array.view(np.int64).copy())
    numpy_type = str(held).removeprefix("torch.")
    return from_numpy(np.array(array, dtype=numpy_type))
