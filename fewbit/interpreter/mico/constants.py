"""Constants: data in the text, packed or not, or in the weight store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute

from fewbit.dialects.mico import (
    ConstantOp,
    GetConstantOp,
    IntType,
    PackedAttr,
    TernaryType,
    element_width,
    shape_of,
)
from fewbit.dialects.mico.shapes import rows_of
from fewbit.errors import InterpretError
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register
from fewbit.interpreter.values import DType, Value, register_type
from fewbit.numerics import row_bytes, unpack
from fewbit.program.references import weight_ref
from fewbit.program.store import WeightStore


@register_type(IntType, TernaryType)
def few_bit(type: Attribute) -> DType:
    return np.dtype(np.int8)


@register(ConstantOp)
def constant(frame: Frame, op: ConstantOp, operands: Sequence[Value]) -> Sequence[Value]:
    raise InterpretError("a constant inside a function is not interpreted")


@register(GetConstantOp)
def get_constant(frame: Frame, op: GetConstantOp, operands: Sequence[Value]) -> Sequence[Value]:
    name = op.symbol.root_reference.data
    name = frame.constants.get(name, name)
    cache = frame.interpreter.globals
    if name not in cache:
        definition = frame.interpreter.symbols.get(name)
        if not isinstance(definition, ConstantOp):
            raise InterpretError(f"@{name} is not a constant of the module")
        cache[name] = constant_value(definition, frame.interpreter.store)
    return (cache[name],)


def constant_value(op: ConstantOp, store: WeightStore | None) -> Value:
    """Return the tensor of a constant; few-bit integers are unpacked."""
    if isinstance(op.value, PackedAttr):
        return _unpack(np.frombuffer(op.value.data, np.uint8), op.type)
    ref = weight_ref(op)
    if ref is None:
        return read_constant(op.value, op.type)
    if store is None:
        raise InterpretError(
            f"@{op.sym_name.data} is in a weight store, and none was given",
            hint="load the program with its weights: fewbit.Program.load(folder)",
        )
    stored = store.get(ref)
    if element_width(op.type) is not None:
        return _unpack(stored, op.type)
    return stored.reshape(shape_of(op.type))


def _unpack(packed: Value, type: Attribute) -> Value:
    width = element_width(type)
    assert width is not None
    shape = shape_of(type)
    rows, k = rows_of(shape)
    return unpack(packed.reshape(rows, row_bytes(k, width)), width, k).reshape(shape)
