"""Constant attributes as values."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IntegerAttr,
)
from xdsl.ir import Attribute

from fewbit.errors import InterpretError
from fewbit.interpreter.integers import wrap
from fewbit.interpreter.values import DType, Value, bit_width, dtype_of, shape_of


def read_constant(attribute: Attribute, type: Attribute) -> Value:
    """Return the value of an integer, float or dense attribute, as a value of `type`."""
    dtype = dtype_of(type)
    match attribute:
        case IntegerAttr():
            number = attribute.value.data
            return cast(Value, dtype.type(number & 1 if dtype.kind == "b" else number))
        case FloatAttr():
            return cast(Value, dtype.type(attribute.value.data))
        case DenseIntOrFPElementsAttr():
            return _read_dense(attribute.data.data, type, dtype)
        case DenseResourceAttr():
            raise InterpretError(
                f"the data of the resource '{attribute.resource_handle.data}' is not in the module",
                hint="import the weights into a weight store, or print them as dense<...>",
            )
        case _:
            raise InterpretError(f"the constant {attribute} is not interpreted")


def _read_dense(data: bytes, type: Attribute, dtype: DType) -> Value:
    shape = cast(tuple[int, ...], shape_of(type))
    count = math.prod(shape)
    if dtype.kind == "b" and len(data) == -(-count // 8) and len(data) != count:
        # MLIR's hexadecimal form packs i1 eight to a byte.
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little", count=count)
        return bits.astype(bool).reshape(shape)
    stored = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    if len(data) == stored.itemsize != count * stored.itemsize:
        element = np.frombuffer(data, stored)
        return np.broadcast_to(_canonical(element, type, dtype)[0], shape)
    if len(data) != count * stored.itemsize:
        raise InterpretError(f"a dense constant of {type} holds {len(data)} bytes")
    return _canonical(np.frombuffer(data, stored), type, dtype).reshape(shape)


def _canonical(stored: Value, type: Attribute, dtype: DType) -> Value:
    """Wrap to the width of the type, because the bytes may hold any bits."""
    if dtype.kind == "b":
        return (stored & 1).astype(bool)
    width = bit_width(type)
    return wrap(stored, width) if dtype.kind == "i" and width < 8 * dtype.itemsize else stored
