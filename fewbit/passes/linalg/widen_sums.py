"""Sums and products of floats, accumulated wide and rounded once.

Importers leave reductions whose accumulator has the type of the result. In f16 a sum of 20000
numbers stops growing long before its end, and overflows at 65504. In f32 a sum has other bits in
another order, and each target has an order of its own. The interpreter accumulates in f64
(`interpreter/reduction.py`, which also says what a reduction is), so targets must too: then the
order no longer matters. Matmuls, whose terms are products of two values, are the exception: they
are the work of a network, and accumulate in f32; a product of 16-bit floats is exact there. Minima
and maxima are exact in any type and stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    ModuleOp,
    TensorType,
    f32,
    f64,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass

from fewbit.dialects.mico.types import element_type
from fewbit.interpreter.loop_nest import used_loops
from fewbit.interpreter.reduction import Reduction, find_reduction
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import convert
from fewbit.passes.linalg.building.tensors import full, sizes_of


@dataclass(frozen=True)
class WidenSums(ModulePass):
    """Accumulate sums in f64, and those of products of 16-bit floats in f32."""

    name = "widen-sums"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        nests = (LinalgStructuredOperation, linalg.ReduceOp)
        kinds = {type(each) for each in op.walk() if isinstance(each, nests)}
        lower_ops(op, dict.fromkeys(kinds, _widen))


@dataclass(frozen=True)
class _Nest:
    """A linalg op, named or not, as its maps and its body."""

    inputs: Sequence[SSAValue]
    outputs: Sequence[SSAValue]
    maps: Sequence[AffineMap]
    body: Block

    @property
    def arguments(self) -> tuple[BlockArgument, ...]:
        """The body's arguments for the outputs."""
        return tuple(self.body.args)[len(self.inputs) :]

    @property
    def output_maps(self) -> Sequence[AffineMap]:
        return self.maps[len(self.inputs) :]

    @property
    def iterators(self) -> list[IteratorTypeAttr]:
        parallel = set[int]().union(*map(used_loops, self.output_maps))
        return [
            IteratorTypeAttr.parallel() if loop in parallel else IteratorTypeAttr.reduction()
            for loop in range(self.maps[0].num_dims)
        ]


def _nest(op: LinalgStructuredOperation | linalg.ReduceOp) -> _Nest:
    if isinstance(op, LinalgStructuredOperation):
        maps = [attribute.data for attribute in op.get_indexing_maps()]
        return _Nest(op.inputs, op.outputs, maps, op.body.block)
    source, start = op.operands
    rank = len(cast(TensorType[Attribute], source.type).get_shape())
    parallel = [AffineDimExpr(i) for i in range(rank) if i not in op.dimensions.get_values()]
    maps = [AffineMap.identity(rank), AffineMap(rank, 0, tuple(parallel))]
    return _Nest([source], [start], maps, op.region.block)


def _widen(op: LinalgStructuredOperation | linalg.ReduceOp) -> Sequence[SSAValue] | None:
    if not op.results:
        return None
    nest = _nest(op)
    sums = [_narrow_sum(nest, i) for i in range(len(nest.outputs))]
    if not any(sums):
        return None
    starts = [
        _wide(output, _wide_type(reduction)) if reduction else output
        for output, reduction in zip(nest.outputs, sums, strict=True)
    ]
    region = _body(nest, [reduction for reduction in sums if reduction], starts)
    widened = linalg.GenericOp(
        nest.inputs,
        starts,
        region,
        [AffineMapAttr(map) for map in nest.maps],
        nest.iterators,
        [start.type for start in starts],
    )
    return [
        convert(value, element_type(old.type))
        for value, old in zip(widened.res, op.results, strict=True)
    ]


def _narrow_sum(nest: _Nest, i: int) -> Reduction | None:
    """Return the sum or product that an output is, over loops that it does not have.

    None, if it is accumulated as wide as it should be.
    """
    element = element_type(nest.outputs[i].type)
    if not isinstance(element, Float16Type | BFloat16Type | Float32Type):
        return None
    map = nest.output_maps[i]
    end = nest.body.last_op
    if end is None or len(used_loops(map)) == map.num_dims:
        return None
    reduction = find_reduction(nest.arguments[i], end.operands[i])
    if reduction is None or not isinstance(reduction.combiner, arith.AddfOp | arith.MulfOp):
        return None
    return None if element == _wide_type(reduction) else reduction


def _wide_type(reduction: Reduction) -> AnyFloat:
    """Return what is accumulated in: f64, but f32 for products of two values.

    Scaled sums of groups with offsets are f32, too: numerics fixes their order.
    """
    if reduction.factors is None:
        return f32 if _scales_integers(reduction.term) else f64
    return f64 if len(set(reduction.factors)) == 1 else f32


def _scales_integers(value: SSAValue) -> bool:
    """Return whether a value is an integer accumulator times scales, or a sum of such."""
    owner = value.owner
    if isinstance(owner, arith.MulfOp | arith.AddfOp):
        return any(map(_scales_integers, owner.operands))
    return isinstance(owner, arith.SIToFPOp) and owner.input.type == i32


def _wide(start: SSAValue, type: AnyFloat) -> SSAValue:
    """Return the initial values of an output, in a wider type."""
    fill = start.owner
    if isinstance(fill, linalg.FillOp):
        number = fill.inputs[0].owner
        if isinstance(number, arith.ConstantOp) and isinstance(number.value, FloatAttr):
            return full(sizes_of(start), type, number.value.value.data)
    return convert(start, type)


def _body(nest: _Nest, sums: Sequence[Reduction], starts: Sequence[SSAValue]):
    types = [element_type(value.type) for value in (*nest.inputs, *starts)]
    by_combiner = {reduction.combiner: reduction for reduction in sums}
    skipped = {op for reduction in sums for op in reduction.skipped}

    @Builder.implicit_region(types)
    def region(args: tuple[BlockArgument, ...]) -> None:
        values: dict[SSAValue, SSAValue] = dict(zip(nest.body.args, args, strict=True))
        for op in nest.body.ops:
            reduction = by_combiner.get(op)
            if reduction is not None:
                values[op.results[0]] = _combine(reduction, values)
            elif op not in skipped:
                op.clone(values)

    return region


def _combine(reduction: Reduction, values: dict[SSAValue, SSAValue]) -> SSAValue:
    """Return what has been accumulated with one more term."""
    wide = _wide_type(reduction)
    if reduction.factors is None:
        term = s.to_float(_inner(reduction.term, values), wide)
    else:
        term = s.mul(*(s.to_float(_inner(factor, values), wide) for factor in reduction.factors))
    (old,) = (v for v in reduction.combiner.operands if v is not reduction.term)
    combine = s.add if isinstance(reduction.combiner, arith.AddfOp) else s.mul
    return combine(values[old], term)


def _inner(value: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
    """Return a value of the old body in the new one; those around it are the same for both."""
    return values.get(value, value)
