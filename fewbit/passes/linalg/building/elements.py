"""Loops over single elements, where each step sees what the ones before it wrote.

Such a loop is one, not one for each dimension, so that a target can keep the tensors that it hands
on in one memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from fewbit.dialects import mico
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    dynamic,
    index_constant,
    size_product,
    sizes_of,
    tensor_type,
)

Values = Sequence[SSAValue]


def fold_indices(
    sizes: Sequence[Size], start: Values, step: Callable[[Sequence[Size], Values], Values]
) -> Values:
    """Fold values by a step for each index within the sizes; the last one varies fastest."""

    def run_round(number: SSAValue, carried: Values) -> Values:
        remaining, indices = number, list[Size]()
        for size in reversed(sizes[1:]):
            indices.insert(0, 0 if size == 1 else arith.RemUIOp(remaining, as_index(size)).result)
            remaining = remaining if size == 1 else arith.DivUIOp(remaining, as_index(size)).result
        return step((remaining, *indices)[: len(sizes)], carried)

    return fold_range(reduce(size_product, sizes, 1), start, run_round)


def fold_range(count: Size, start: Values, step: Callable[[SSAValue, Values], Values]) -> Values:
    """Fold values by a step for each number below `count`."""
    body = Block(arg_types=[IndexType(), *(value.type for value in start)])
    with ImplicitBuilder(body) as (number, *carried):
        scf.YieldOp(*step(number, carried))
    return scf.ForOp(index_constant(0), as_index(count), index_constant(1), start, body).results


def keep_sizes(results: Values, start: Values) -> Values:
    """Return results of a fold that say their dynamic sizes, which are those that it began with."""
    return [with_sizes(value, sizes_of(like)) for value, like in zip(results, start, strict=True)]


def with_sizes(value: SSAValue, sizes: Sequence[Size]) -> SSAValue:
    """Return a tensor as one of these sizes; `assert-sizes` checks that it has as many elements."""
    if not dynamic(sizes):
        return value
    zeros, ones = [0] * len(sizes), [1] * len(sizes)
    type = tensor_type(sizes, mico.element_type(value.type))
    return tensor.ExtractSliceOp(value, zeros, sizes, ones, type).result


def element(source: SSAValue, indices: Sequence[Size]) -> SSAValue:
    places = [as_index(index) for index in indices]
    return tensor.ExtractOp(source, places, mico.element_type(source.type)).result


def with_element(into: SSAValue, indices: Sequence[Size], value: SSAValue) -> SSAValue:
    return tensor.InsertOp(value, into, [as_index(index) for index in indices]).result


def inline_region(region: Region, arguments: Values) -> Values:
    """Emit the ops of a region on these arguments; return what it yields."""
    block = region.block
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    *body, end = block.ops
    for inner in body:
        inner.clone(values)
    return [values.get(value, value) for value in end.operands]
