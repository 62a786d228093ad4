"""Tensors of a traced graph as MLIR types, and as arrays for the weight store."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from fewbit.decompositions.sizes import is_static
from fewbit.errors import UnsupportedError

# Not uint8: linalg has no signs, and what torch-mlir makes of it computes with signed bytes.
ELEMENTS: dict[torch.dtype, Attribute] = {
    torch.float32: f32,
    torch.float16: f16,
    torch.bfloat16: bf16,
    torch.float64: Float64Type(),
    torch.int64: i64,
    torch.int32: i32,
    torch.int16: IntegerType(16),
    torch.int8: IntegerType(8),
    torch.bool: i1,
}


UNSIGNED: dict[torch.dtype, Attribute] = {
    torch.uint8: IntegerType(8, Signedness.UNSIGNED),
    torch.uint16: IntegerType(16, Signedness.UNSIGNED),
    torch.uint32: IntegerType(32, Signedness.UNSIGNED),
    torch.uint64: IntegerType(64, Signedness.UNSIGNED),
}
"""Types of inputs and outputs only, between which and signed ones two ops of ours convert."""

WIDEN, NARROW = "fewbit::widen", "fewbit::narrow"


def element_type(dtype: torch.dtype) -> Attribute:
    if dtype in UNSIGNED:
        return UNSIGNED[dtype]
    if dtype not in ELEMENTS:
        known = ", ".join(str(d).removeprefix("torch.") for d in ELEMENTS)
        raise UnsupportedError(f"tensors of {dtype} are not imported", hint=f"known: {known}")
    return ELEMENTS[dtype]


def is_known(value: Any) -> bool:
    """Return whether a value that a node computes can stand in a program."""
    if isinstance(value, torch.Tensor):
        return value.dtype in ELEMENTS and value.layout is torch.strided
    return True


def is_unsigned(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in UNSIGNED


def tensor_type(tensor: torch.Tensor) -> TensorType[Attribute]:
    shape = [int(size) if is_static(size) else DYNAMIC_INDEX for size in tensor.shape]
    return TensorType(element_type(tensor.dtype), shape)


def value_type(value: Any) -> Attribute:
    """The type of what a node of the graph computes."""
    if isinstance(value, torch.Tensor):
        return tensor_type(value)
    if isinstance(value, bool | torch.SymBool):
        return i1
    if isinstance(value, int | torch.SymInt):
        return i64
    if isinstance(value, float | torch.SymFloat):
        return Float64Type()
    raise UnsupportedError(f"a value of {type(value).__name__} cannot stand in a program")


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The data of a tensor, for the store."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()
