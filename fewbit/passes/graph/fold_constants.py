"""Evaluate what depends on constants alone, with the interpreter.

An op folds when it has no effect and refers to no symbol, and all that it uses are constants:
`arith.constant`, or `mico.get_constant` of data that stands in the module. Folding one op may
make the next foldable. Constants must not swell the module, so all folds together may add at
most `max_bytes`, counting constants that die with their last user as bytes saved. A splat counts
as one element, which is what the text holds of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    SignlessIntegerConstraint,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from fewbit.dialects import mico
from fewbit.interpreter import evaluate_op
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.values import Value, bit_width, dtype_of, element_type, shape_of
from fewbit.ir.rewrite import rewrite
from fewbit.ir.symbols import SymbolTable, using
from fewbit.ir.walk import nested_ops
from fewbit.passes.graph.calls import is_effect_free, symbols_used

ConstantAttr: TypeAlias = IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Evaluate ops that use only constants."""

    name = "fold-constants"

    max_bytes: int = 65_536
    """By how much the module's constants may grow in all."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using(SymbolTable(op)):
            rewrite(op, [FoldConstantOp(self.max_bytes)])


@dataclass
class FoldConstantOp(RewritePattern):
    budget: int
    """Bytes that may still be added."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not _is_foldable(op):
            return
        # A result that takes much more memory than its operands is not even computed.
        constant_operands = [v for v in op.operands if _attribute(v) is not None]
        if bytes_of(op.results) > self.budget + bytes_of(constant_operands):
            return
        folded = _evaluate(op)
        if folded is None:
            return
        dying = _constants_only_for(op)
        growth = sum(map(_stored_bytes, folded)) - sum(_stored_bytes(c.value) for c in dying)
        if growth > self.budget:
            return
        self.budget -= growth
        constants = [arith.ConstantOp(attribute) for attribute in folded]
        for constant in constants:
            constant.location = op.location
        rewriter.replace(op, constants, [constant.result for constant in constants])
        for constant in dying:
            rewriter.erase(constant)


def make_constant(value: Value, type: Attribute) -> ConstantAttr:
    """Return the attribute of a value, just as the parser would make it from its text."""
    if isinstance(type, TensorType):
        # xDSL holds a true i1 as the byte of -1.
        stored = -value.view(np.int8) if value.dtype == bool else value
        return DenseIntOrFPElementsAttr(
            cast(TensorType[IntegerType], type), BytesAttr(np.ascontiguousarray(stored).tobytes())
        )
    if isinstance(type, IntegerType | IndexType):
        return IntegerAttr(int(value), cast(IntegerType, type))
    return FloatAttr(float(value), cast(AnyFloat, type))


def _evaluate(op: Operation) -> list[ConstantAttr] | None:
    """Return the op's results; None where they are not known."""
    try:
        values = evaluate_op(op, [_value(operand) for operand in op.operands])
        return [make_constant(v, r.type) for v, r in zip(values, op.results, strict=True)]
    except Exception:
        # The interpreter does not know the op, or its outcome is undefined; the functions of
        # other dialects may say so in their own ways. An op that is not folded is still right.
        return None


def _is_foldable(op: Operation) -> bool:
    if not all(_is_holdable(result.type) for result in op.results):
        return False
    if not is_function_of_operands(op):
        return False
    return all(_attribute(v) is not None or is_blank_output(v, op) for v in op.operands)


def is_function_of_operands(op: Operation) -> bool:
    """Return whether an op is a pure function of its operands, without symbols or captures."""
    if not op.results or not op.operands or not is_effect_free(op):
        return False
    if any(True for _ in symbols_used(op)):
        return False
    # Its regions use only what is defined in them.
    return all(
        op.is_ancestor(value.owner) and value.owner is not op
        for user in nested_ops(op)
        if user is not op
        for value in user.operands
    )


def has_known_size(type: Attribute) -> bool:
    sizes = shape_of(type)
    return sizes is not None and None not in sizes


def _is_holdable(type: Attribute) -> bool:
    """Return whether `arith.constant` can give a value of this type."""
    if not has_known_size(type) or isinstance(type, VectorType):
        return False
    element = element_type(type)
    if isinstance(element, IndexType | Float16Type | BFloat16Type | Float32Type | Float64Type):
        return True
    return SignlessIntegerConstraint.verifies(element) and bit_width(element) <= 64


def _attribute(value: SSAValue) -> ConstantAttr | None:
    """Return the constant that `value` is, where the module holds its data."""
    owner = value.owner
    attribute: Attribute | None = None
    if isinstance(owner, arith.ConstantOp):
        attribute = owner.value
    elif isinstance(owner, mico.GetConstantOp):
        attribute = owner.constant.value
    return attribute if isinstance(attribute, ConstantAttr) else None


def is_blank_output(value: SSAValue, op: Operation) -> bool:
    """Return whether a value is the empty tensor into which a linalg op writes."""
    return isinstance(value.owner, tensor.EmptyOp) and op.dialect_name() == "linalg"


def _value(operand: SSAValue) -> Value:
    attribute = _attribute(operand)
    if attribute is not None:
        return read_constant(attribute, operand.type)
    assert isinstance(operand.owner, Operation)
    return evaluate_op(operand.owner, ())[0]


def _constants_only_for(op: Operation) -> list[arith.ConstantOp]:
    owners = dict.fromkeys(operand.owner for operand in op.operands)
    return [
        owner
        for owner in owners
        if isinstance(owner, arith.ConstantOp)
        and all(use.operation is op for use in owner.result.uses)
    ]


def bytes_of(values: Iterable[SSAValue]) -> int:
    """Return the bytes of values in memory; their sizes are static."""
    types = [value.type for value in values]
    return sum(math.prod(cast(tuple[int, ...], shape_of(t))) * dtype_of(t).itemsize for t in types)


def _stored_bytes(attribute: Attribute) -> int:
    """Return the bytes that a constant adds to the module."""
    if not isinstance(attribute, DenseIntOrFPElementsAttr):
        return dtype_of(cast(IntegerAttr | FloatAttr, attribute).type).itemsize
    data = attribute.data.data
    element = data[: dtype_of(element_type(attribute.get_type())).itemsize]
    return len(element) if data == element * (len(data) // max(len(element), 1)) else len(data)
