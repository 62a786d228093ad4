"""Contractions of linalg, by what each of their loops does.

A contraction multiplies two tensors and sums, as an einsum does: `matmul`, `batch_matmul`, or any
generic op with that body. Where an operand is merely broadcast, the tensor before it is taken, so
that a loop which only repeats it is none of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp, GenericOp, YieldOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fewbit.dialects.mico import ReshapeOp, TransposeOp, element_type, shape_of
from fewbit.dialects.mico.syntax import ints
from fewbit.dialects.mico.types import is_float_tensor

Loops = tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """A tensor, and the loop that each of its dimensions is."""

    value: SSAValue
    loops: Loops

    @property
    def sizes(self) -> dict[int, int]:
        """Sizes by loop."""
        return dict(zip(self.loops, shape_of(self.value.type), strict=True))


@dataclass(frozen=True)
class Contraction:
    operands: tuple[Operand, Operand]
    result: Operand


def contraction_of(op: Operation) -> Contraction | None:
    """Return an op as a contraction that begins with zeros; None where it is none."""
    if not isinstance(op, LinalgStructuredOperation) or len(op.results) != 1:
        return None
    if len(op.inputs) != 2 or len(op.outputs) != 1 or not _begins_with_zeros(op.outputs[0]):
        return None
    if not all(is_float_tensor(value.type) for value in (*op.inputs, op.results[0])):
        return None
    loops = [_loops(map.data) for map in op.get_indexing_maps().data]
    if any(each is None for each in loops) or not _multiplies_and_adds(op.body.block):
        return None
    left, right, out = cast("list[Loops]", loops)
    operands = (
        _before_broadcast(Operand(op.inputs[0], left)),
        _before_broadcast(Operand(op.inputs[1], right)),
    )
    return Contraction(operands, Operand(op.results[0], out))


def _loops(map: AffineMap) -> Loops | None:
    """Return the loop of each dimension; None where an index is more than a loop."""
    loops = tuple(each.position for each in map.results if isinstance(each, AffineDimExpr))
    return loops if len(loops) == len(map.results) == len(set(loops)) else None


def _begins_with_zeros(value: SSAValue) -> bool:
    fill = value.owner
    if not isinstance(fill, FillOp):
        return False
    scalar = fill.inputs[0].owner
    return (
        isinstance(scalar, arith.ConstantOp)
        and isinstance(scalar.value, FloatAttr)
        and scalar.value.value.data == 0
    )


def _multiplies_and_adds(body: Block) -> bool:
    """Return whether a body adds the product of both inputs to the output."""
    last = body.last_op
    if not isinstance(last, YieldOp) or len(last.operands) != 1:
        return False
    added = last.operands[0].owner
    if not isinstance(added, arith.AddfOp):
        return False
    left, right, out = body.args
    terms = [value for value in added.operands if value is not out]
    if len(terms) != 1 or not isinstance(terms[0].owner, arith.MulfOp):
        return False
    factors = {_before_extension(factor) for factor in terms[0].owner.operands}
    return factors == {left, right}


def _before_extension(value: SSAValue) -> SSAValue:
    return value.owner.input if isinstance(value.owner, arith.ExtFOp) else value


def _before_broadcast(operand: Operand) -> Operand:
    """Return the tensor that an operand repeats or transposes, and the loops of that one."""
    while (source := _source(operand.value)) is not None:
        value, dims = source
        operand = Operand(value, tuple(operand.loops[d] for d in dims))
    return operand


def _source(value: SSAValue) -> tuple[SSAValue, Sequence[int]] | None:
    """Return what a value is a copy of, and which of its dimensions that one has."""
    op = value.owner
    if isinstance(op, TransposeOp):
        order = ints(op.permutation)
        return op.input, [order.index(d) for d in range(len(order))]
    if isinstance(op, ReshapeOp):
        return _source_of_reshape(op)
    if not isinstance(op, GenericOp) or len(op.inputs) != 1 or len(op.results) != 1:
        return None
    last = op.body.block.last_op
    if last is not op.body.block.first_op or last is None:
        return None
    source, result = (_loops(map.data) for map in op.get_indexing_maps().data)
    if source is None or result is None or list(last.operands) != [op.body.block.args[0]]:
        return None
    return op.inputs[0], [result.index(loop) for loop in source]


def _source_of_reshape(op: ReshapeOp) -> tuple[SSAValue, Sequence[int]] | None:
    """Return what a reshape repeats: its input, or what that repeats along the dimensions it joins.

    A stack of one matrix is often repeated along several dimensions, which then become one.
    """
    if not _is_static(op.input) or not _is_static(op.result):
        return None
    if op.input.type == op.result.type:
        return op.input, range(len(shape_of(op.result.type)))
    joined = _joined_dims(shape_of(op.input.type), shape_of(op.result.type))
    source = _source(op.input)
    if joined is None or source is None:
        return None
    value, dims = source
    sizes = shape_of(op.input.type)
    alone = all(
        other == dim or sizes[other] == 1
        for dim in dims
        for other in range(len(sizes))
        if joined[other] == joined[dim]
    )
    return (value, [joined[dim] for dim in dims]) if alone else None


def _joined_dims(before: Sequence[int], after: Sequence[int]) -> list[int] | None:
    """Return the dimension that each becomes a part of; None where a reshape splits some."""
    dims: list[int] = []
    for dim, size in enumerate(after):
        product = 1
        while len(dims) < len(before) and (product < size or before[len(dims)] == 1):
            product *= before[len(dims)]
            dims.append(dim)
        if product != size:
            return None
    return dims if len(dims) == len(before) else None


def _is_static(value: SSAValue) -> bool:
    return cast("TensorType[Any]", value.type).has_static_shape()


def find_rounded(value: SSAValue) -> SSAValue | None:
    """Return a value after the conversion to a narrower float that alone reads it."""
    uses = list(value.uses)
    op = uses[0].operation if len(uses) == 1 else None
    if not isinstance(op, GenericOp) or len(op.inputs) != 1 or len(op.results) != 1:
        return None
    body = op.body.block
    loops = [_loops(map.data) for map in op.get_indexing_maps().data]
    if len(list(body.ops)) != 2 or not isinstance(body.first_op, arith.TruncFOp):
        return None
    same = loops[0] is not None and loops[0] == loops[1] == tuple(range(len(loops[0])))
    return op.results[0] if same and body.first_op.input is body.args[0] else None


def is_same_element(*values: SSAValue) -> bool:
    return len({element_type(value.type) for value in values}) == 1
