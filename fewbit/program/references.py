"""What a program's constants expect of the weight store.

A constant refers to a stored tensor by key and hash (`#mico.ref`); its type says how that tensor
looks: floats and ordinary integers as themselves, few-bit integers as `uint8`, one packed row
for each index of the first dimension (`fewbit.numerics.packing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute

from fewbit.dialects.mico.attributes import RefAttr
from fewbit.dialects.mico.constants import ConstantOp, GetConstantOp
from fewbit.dialects.mico.shapes import rows_of
from fewbit.dialects.mico.types import element_type, element_width, shape_of
from fewbit.errors import StoreError, UnsupportedError
from fewbit.interpreter.values import dtype_of
from fewbit.ir.locations import place_of
from fewbit.ir.walk import nested_ops
from fewbit.numerics.packing import row_bytes
from fewbit.program.store import WeightRef, WeightStore
from fewbit.program.tensor_file import CODES, DTYPES


def stored_as(type: Attribute) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype, in a store, of a constant of this type."""
    shape, width = shape_of(type), element_width(type)
    if width is not None:
        rows, k = rows_of(shape)
        return (rows, row_bytes(k, width)), np.dtype(np.uint8)
    dtype = dtype_of(type)
    if dtype not in CODES:
        hint = f"a store holds {', '.join(DTYPES)}, and few-bit integers packed"
        raise UnsupportedError(f"a {type} cannot be kept in a weight store", hint=hint)
    return shape, dtype


def weight_ref(constant: ConstantOp) -> WeightRef | None:
    """Return what a constant refers to; None where its data is in the text."""
    if not isinstance(constant.value, RefAttr):
        return None
    shape, dtype = stored_as(constant.type)
    return WeightRef(constant.value.key, constant.value.sha256, shape, dtype)


def references(module: ModuleOp) -> Iterator[tuple[Operation, RefAttr]]:
    """Yield every reference to the store, wherever it stands, and the op that holds it."""
    for op in nested_ops(module):
        for attribute in (*op.properties.values(), *op.attributes.values()):
            for reference in _references_in(attribute):
                yield op, reference


def check_references(module: ModuleOp, store: WeightStore) -> None:
    """Refuse a reference whose tensor is missing, of another type, or of other content."""
    for op, attribute in references(module):
        try:
            store.check(_expected(op, attribute, store))
        except StoreError as error:
            where = f" ({error.place})" if error.place else ""
            raise StoreError(f"{error.what}{where}", place=place_of(op), hint=error.hint) from error
        except UnsupportedError as error:
            raise error.at(**vars(place_of(op))) from None


def _expected(op: Operation, attribute: RefAttr, store: WeightStore) -> WeightRef:
    ref = weight_ref(op) if isinstance(op, ConstantOp) else None
    if ref is not None:
        return ref
    key = attribute.key
    return WeightRef(key, attribute.sha256, store.shape(key), store.dtype(key))


def _references_in(attribute: Attribute) -> Iterator[RefAttr]:
    if isinstance(attribute, RefAttr):
        yield attribute
    elif isinstance(attribute, ArrayAttr | DictionaryAttr):
        parts = attribute.data.values() if isinstance(attribute, DictionaryAttr) else attribute.data  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for part in parts:  # pyright: ignore[reportUnknownVariableType]
            yield from _references_in(part)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(attribute, ParametrizedAttribute):
        for part in attribute.parameters:
            yield from _references_in(part)


def read_bytes(module: ModuleOp, store: WeightStore) -> int:
    """Return the bytes of all constants that the program reads, each counted once."""
    read = {
        op.symbol.root_reference.data for op in nested_ops(module) if isinstance(op, GetConstantOp)
    }
    return sum(
        constant_bytes(op, store)
        for op in module.body.block.ops
        if isinstance(op, ConstantOp) and op.sym_name.data in read
    )


def constant_bytes(constant: ConstantOp, store: WeightStore) -> int:
    """Return the bytes that a constant takes, stored or in the text."""
    if isinstance(constant.value, RefAttr):
        return store.nbytes(constant.value.key)
    shape, width = shape_of(constant.type), element_width(constant.type)
    if DYNAMIC_INDEX in shape:
        return 0
    if width is not None:
        return -(-prod(shape) * width.bits // 8)
    element = element_type(constant.type)
    size = 1 if element == IntegerType(1) else dtype_of(constant.type).itemsize
    return prod(shape) * size
