"""`mico.embedding` as a loop over its result that looks up each element of the table.

Elements of a few-bit table are scaled where they are looked up, so only rows that are asked for
are dequantized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, i32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import elementwise, loops, read
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_tensor,
    as_type,
    index_constant,
    integers,
    size_of,
    sizes_of,
)

ElementAt = Callable[[SSAValue, SSAValue], SSAValue]
"""Gives the element of a table in a row and a column."""


@dataclass(frozen=True)
class LowerEmbedding(ModulePass):
    """Turn embeddings into loops."""

    name = "lower-embedding"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {mico.EmbeddingOp: _embedding})


def _embedding(op: mico.EmbeddingOp) -> Sequence[SSAValue]:
    table = integers(op.weight)
    return look_up(op, size_of(table, 1), lambda row, column: _at(table, [row, column]))


def look_up(op: mico.EmbeddingOp, width: Size, element_at: ElementAt) -> Sequence[SSAValue]:
    """Return the rows that are asked for, given how an element of the table is read."""
    sizes = [*sizes_of(op.indices), width]
    *outer, feature = loops(len(sizes))
    element = mico.element_type(op.result.type)
    scale = None if op.weight_scale is None else as_tensor(op.weight_scale)
    zero_point = None if op.weight_zero_point is None else as_tensor(op.weight_zero_point)
    offset = None if op.weight_offset is None else as_tensor(op.weight_offset)
    few = mico.element_width(op.weight.type)

    def body(number: SSAValue) -> SSAValue:
        row, column = _index(number), s.loop_index(feature.position)
        value = element_at(row, column)
        if scale is None:
            return value
        if zero_point is not None:
            zero = s.to_integer(_of_run(op, zero_point, row, column), i32)
            value = s.sub(s.to_integer(value, i32), zero)
        if offset is not None and few is not None:
            value = s.sub(s.to_integer(value, i32), s.constant(few.qmin, i32))
        value = s.mul(s.to_float(value), _of_run(op, scale, row, column))
        return value if offset is None else s.add(value, _of_run(op, offset, row, column))

    return [as_type(elementwise([read(op.indices, *outer)], sizes, element, body), op.result.type)]


def _index(number: SSAValue) -> SSAValue:
    return arith.IndexCastOp(number, IndexType()).result


def _at(source: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
    return tensor.ExtractOp(source, indices, mico.element_type(source.type)).result


def _of_run(op: mico.EmbeddingOp, values: SSAValue, row: SSAValue, column: SSAValue) -> SSAValue:
    """Return a scale, zero point or offset: of the table, of a row, or of a group within it."""
    shape = mico.shape_of(values.type)
    if len(shape) < 2:
        return _at(values, [row][: len(shape)])
    length = index_constant(mico.shape_of(op.weight.type)[1] // shape[1])
    return _at(values, [row, arith.DivUIOp(column, length).result])
