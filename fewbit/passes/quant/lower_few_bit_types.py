"""Every value of few-bit type as i8: the last step, when no op needs the few-bit types any more.

Until now casts stood between i8 and the few-bit types. Here arguments, results and signatures are
given i8 as well, which leaves the casts without work, and they go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FunctionType,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
    i8,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.dialects import mico
from fewbit.errors import PassError
from fewbit.ir.locations import place_of
from fewbit.ir.walk import nested_ops


@dataclass(frozen=True)
class LowerFewBitTypes(ModulePass):
    """Give i8 to every value of few-bit type."""

    name = "lower-few-bit-types"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ops = list(nested_ops(op))
        _refuse_what_is_left(ops)
        for inner in ops:
            _retype(inner)
        for inner in ops:
            if isinstance(inner, UnrealizedConversionCastOp) and _does_nothing(inner):
                Rewriter.replace_op(inner, [], inner.operands)


def _refuse_what_is_left(ops: Sequence[Operation]) -> None:
    left = [op for op in ops if op.dialect_name() == "mico" and _uses_few_bit_types(op)]
    if not left:
        return
    names = ", ".join(sorted({op.name for op in left}))
    raise PassError(
        f"{len(left)} ops still need few-bit types: {names}",
        place=place_of(left[0]),
        hint="run the lower-* passes and unpack-weights first",
    )


def _uses_few_bit_types(op: Operation) -> bool:
    types = [value.type for value in (*op.operands, *op.results)]
    if isinstance(op, mico.ConstantOp):
        types.append(op.type)
    return any(_plain(type) != type or isinstance(type, mico.QTensorType) for type in types)


def _plain(type: Attribute) -> Attribute:
    if mico.element_width(type) is None:
        return type
    return TensorType(i8, mico.shape_of(type))


def _retype(op: Operation) -> None:
    values: list[SSAValue] = [*op.results]
    for region in op.regions:
        for block in region.blocks:
            values += block.args
    for value in values:
        if (type := _plain(value.type)) != value.type:
            Rewriter.replace_value_with_new_type(value, type)
    for attributes in (op.properties, op.attributes):
        for name, attribute in attributes.items():
            if isinstance(attribute, FunctionType):
                attributes[name] = FunctionType.from_lists(
                    [_plain(type) for type in attribute.inputs],
                    [_plain(type) for type in attribute.outputs],
                )


def _does_nothing(cast: UnrealizedConversionCastOp) -> bool:
    return cast.operand_types == cast.result_types
