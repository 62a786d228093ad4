"""Tensors without elements, that no op computes.

A slice `x[8:]` of 8 elements begins where the memory of x ends. Memory has no such place: upstream
refuses views that begin at the end of what they view, and divides by sizes that are 0. So what has
no elements is not computed, concatenated, padded or inserted; only its shape is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.hints import isa

from fewbit.dialects.mico.types import shape_of
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.tensors import as_type, dynamic, size_of, size_sum


@dataclass(frozen=True)
class DropEmptyTensors(ModulePass):
    """Leave of tensors without elements nothing but their shapes."""

    name = "drop-empty-tensors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kinds = {type(each) for each in op.walk() if _computes_tensors(each)}
        lower_ops(op, dict.fromkeys(kinds, _drop))


def _computes_tensors(op: Operation) -> bool:
    if isinstance(op, tensor.EmptyOp):
        return False
    return isinstance(op, LinalgStructuredOperation) or op.dialect_name() == "tensor"


def _drop(op: Operation) -> Sequence[SSAValue] | None:
    if isinstance(op, tensor.ConcatOp):
        return _concat(op)
    if isinstance(op, tensor.PadOp) and _is_empty(op.source):
        return _pad(op)
    if isinstance(op, tensor.InsertSliceOp) and _is_empty(op.source):
        return [op.dest]
    if not op.results or not all(map(_is_empty, op.results)):
        return None
    if isinstance(op, tensor.ExtractSliceOp):
        return [tensor.EmptyOp(op.sizes, op.result.type).tensor]
    if any(DYNAMIC_INDEX in shape_of(result.type) for result in op.results):
        return None
    return [tensor.EmptyOp([], result.type).tensor for result in op.results]


def _concat(op: tensor.ConcatOp) -> Sequence[SSAValue] | None:
    dim = op.dim.value.data
    if _is_empty(op.result):
        return [_shaped_like(op, dim)]
    parts = [value for value in op.inputs if shape_of(value.type)[dim] != 0]
    if len(parts) == len(op.inputs):
        return None
    if len(parts) == 1:
        return [as_type(parts[0], op.result.type)]
    return [tensor.ConcatOp(parts, dim, op.result.type).result]


def _pad(op: tensor.PadOp) -> Sequence[SSAValue] | None:
    """Return the padding alone, where its value is a constant or comes from outside."""
    if op.low or op.high:
        return None
    end = op.region.block.last_op
    assert end is not None
    value = end.operands[0]
    if value.owner is op.region.block:
        return None
    if isinstance(value.owner, arith.ConstantOp):
        value = value.owner.clone().result
    elif value.owner.parent is op.region.block:
        return None
    pads = zip(op.static_low.get_values(), op.static_high.get_values(), strict=True)
    sizes = [size_sum(size_of(op.source, axis), sum(each)) for axis, each in enumerate(pads)]
    known = [size for size in sizes if isinstance(size, SSAValue)]
    whole = tensor.EmptyOp(known, op.result.type).tensor
    return [linalg.FillOp([value], [whole]).res[0]]


def _shaped_like(op: tensor.ConcatOp, dim: int) -> SSAValue:
    """Return a tensor of the shape that a concatenation has."""
    shape = shape_of(op.result.type)
    sizes = [
        reduce(size_sum, (size_of(value, dim) for value in op.inputs))
        if axis == dim
        else size_of(op.inputs[0], axis)
        for axis in range(len(shape))
    ]
    known = [size if n == DYNAMIC_INDEX else n for size, n in zip(sizes, shape, strict=True)]
    return tensor.EmptyOp(dynamic(known), op.result.type).tensor


def _is_empty(value: SSAValue) -> bool:
    type = value.type
    return isa(type, TensorType) and 0 in shape_of(type)
