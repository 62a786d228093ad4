"""One sample at a time: the batch, which a program leaves open, becomes 1.

Memory of a microcontroller or a browser's program is planned to the byte, and kernels know all
sizes. A batch is the
first dimension of every input; what depends on it follows by the rules of ops, and a size that
remains open is one that only its user can say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FunctionType,
    ModuleOp,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from fewbit.dialects.mico.syntax import LayerOp
from fewbit.errors import UnsupportedError
from fewbit.ir.locations import place_of
from fewbit.pipeline.entry import entry_of
from fewbit.program.program import Program
from fewbit.program.signature import Signature, signature_of


@dataclass(frozen=True)
class FixSizes(ModulePass):
    """Make the first dimension of every input 1, where it is open."""

    name = "fix-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entry = entry_of(op)
        if not any(_is_open(each) for each in entry.function_type.inputs):
            return
        for argument in entry.body.block.args:
            _retype(argument, _one_sample(argument.type))
        for inner in list(entry.body.walk()):
            _follow(inner)
        results = cast("Operation", entry.body.block.last_op).operand_types
        entry.function_type = FunctionType.from_lists(entry.body.block.arg_types, results)
        _refuse_open(entry)


def one_sample(program: Program) -> Signature:
    """Return the signature with a batch of one where it is open, as `fix-sizes` makes it."""
    signature = signature_of(program.module)
    inputs, outputs = (
        tuple(replace(spec, shape=_first_is_one(spec.shape)) for spec in specs)
        for specs in (signature.inputs, signature.outputs)
    )
    return replace(signature, inputs=inputs, outputs=outputs)


def _first_is_one(shape: tuple[int | None, ...] | None) -> tuple[int | None, ...] | None:
    if not shape:
        return shape
    return (1 if shape[0] is None else shape[0], *shape[1:])


def _is_open(type: Attribute) -> bool:
    return isinstance(type, TensorType) and DYNAMIC_INDEX in type.get_shape()


def _retype(value: SSAValue, type: Attribute) -> None:
    if value.type != type:
        Rewriter.replace_value_with_new_type(value, type)


def _one_sample(type: Attribute) -> Attribute:
    """Return a type whose first dimension is 1 where it was open."""
    if not _is_open(type):
        return type
    shaped = cast("TensorType[Any]", type)
    first, *others = shaped.get_shape()
    return TensorType(shaped.element_type, [1 if first == DYNAMIC_INDEX else first, *others])


def _follow(op: Operation) -> None:
    """Give the results of an op the types that follow from its operands."""
    if not any(_is_open(result.type) for result in op.results):
        return
    if isinstance(op, tensor.EmptyOp):
        Rewriter.replace_op(op, tensor.EmptyOp([], _one_sample(op.tensor.type)))
        return
    if isinstance(op, tensor.ExpandShapeOp):
        Rewriter.replace_op(op, _expand_reshape(op))
        return
    is_layer = isinstance(op, LayerOp)
    found = op.output_types() if is_layer else [_one_sample(r.type) for r in op.results]
    for result, type in zip(op.results, found, strict=True):
        _retype(result, type)


def _expand_reshape(op: tensor.ExpandShapeOp) -> Operation:
    """Return the op with all sizes of its result in the text."""
    shaped = cast("TensorType[Any]", _one_sample(op.result.type))
    return tensor.ExpandShapeOp.create(
        operands=[op.src],
        result_types=[shaped],
        properties=op.properties
        | {"static_output_shape": DenseArrayBase.from_list(i64, shaped.get_shape())},
    )


def _refuse_open(entry: FuncOp) -> None:
    for op in entry.walk():
        if any(_is_open(result.type) for result in op.results):
            raise UnsupportedError(
                f"the result of {op.name} has a size that is not known, and programs of this "
                "target have sizes that are",
                place=place_of(op, "fix-sizes"),
                hint="give the sizes of inputs: --input-shape x=1x3x96x96",
            )
