"""Rotation by a block Hadamard matrix as loops: one for each stage of butterflies.

All stages have the same form. A stage reads neighbours and writes their sums to the first half of a
block, their differences to the second, so that the next bit of an index comes to be the lowest; as
many stages as there are bits bring every element back to its place. What is written is contiguous,
and what is read has stride 2, which processors load as vectors and shuffle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.numerics.hadamard import factor
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import convert, generic, loops, read
from fewbit.passes.linalg.building.tensors import (
    as_type,
    collapse_axes,
    expand_axis,
    size_of,
    size_quotient,
    sizes_of,
)


@dataclass(frozen=True)
class LowerHadamard(ModulePass):
    """Turn rotations into loops."""

    name = "lower-hadamard"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {mico.HadamardOp: _hadamard})


def _hadamard(op: mico.HadamardOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.input.type)
    wide = s.working_type(element)
    block, lead = op.block.value.data, len(mico.shape_of(op.input.type)) - 1
    stages = block.bit_length() - 1
    blocks = size_quotient(size_of(op.input, lead), block)
    x = expand_axis(convert(op.input, wide), lead, [blocks, block])
    for stage in range(stages):
        x = _stage(x, lead + 1, wide, factor(block) if stage == stages - 1 else None)
    y = convert(collapse_axes(x, lead, lead + 1), element)
    return [as_type(y, op.result.type)]


def _stage(x: SSAValue, axis: int, element: Attribute, factor: float | None) -> SSAValue:
    """Return the sums of neighbours along the last dimension, then their differences."""
    block = mico.shape_of(x.type)[axis]
    pairs = expand_axis(x, axis, [block // 2, 2])
    *outer, half, _ = sizes_of(pairs)
    index = loops(axis + 2)
    *around, _, pair = index

    def body(first: SSAValue, second: SSAValue) -> SSAValue:
        is_sum = s.compare(s.loop_index(axis), "eq", s.constant(0, IndexType()))
        y = s.select(is_sum, s.add(first, second), s.sub(first, second))
        return y if factor is None else s.mul(y, s.constant(factor, element))

    inputs = [read(pairs, *around, pair, AffineConstantExpr(side)) for side in (0, 1)]
    return collapse_axes(generic(inputs, index, [*outer, 2, half], element, body), axis, axis + 1)
