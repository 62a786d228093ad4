"""Large splat constants, filled at run time.

As data of a library they would be as large as their tensors, though a text of one line asks for
them. A loop that reads such a constant has the number itself, once the two are fused.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    IntegerType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg.ops import FillOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.ir.parse import LARGE_SPLAT
from fewbit.pipeline.entry import functions_of


@dataclass(frozen=True)
class FillSplats(ModulePass):
    """Fill large splat constants by loops."""

    name = "fill-splats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_of(op):
            fill_splats(function)


def fill_splats(entry: func.FuncOp) -> None:
    for op in list(entry.walk()):
        if not isinstance(op, arith.ConstantOp) or not _is_large_splat(op.value):
            continue
        dense = cast(DenseIntOrFPElementsAttr, op.value)
        type = cast("TensorType[Attribute]", op.result.type)
        number = arith.ConstantOp(next(iter(dense.iter_attrs())))
        memory = tensor.EmptyOp([], type)
        filled = FillOp([number.result], [memory.tensor], res=[type])
        for new in (number, memory, filled):
            new.location = op.location
            Rewriter.insert_op(new, InsertPoint.before(op))
        op.result.replace_all_uses_with(filled.results[0])
        Rewriter.erase_op(op)


def _is_large_splat(value: Attribute) -> bool:
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return False
    dense = cast("DenseIntOrFPElementsAttr[AnyFloat | IntegerType]", value)
    size = dense.get_element_type().compile_time_size
    if prod(dense.get_shape()) * size < LARGE_SPLAT:
        return False
    data = dense.data.data
    return data == data[:size] * (len(data) // size)
