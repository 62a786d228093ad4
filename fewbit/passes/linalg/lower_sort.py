"""`tm_tensor.sort` as a merge sort: stable, in n log n comparisons, without recursion.

Each round merges neighbouring runs of sorted elements to runs of twice the length, from one half of
a tensor to the other. Its steps are places of the result: they hand on how far both runs are read,
and take the next element of the one or the other by a select, so that no step branches. All rounds
are one loop, whose tensors stay in one memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.ir import Region, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.upstream.tm_tensor import SortOp
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.elements import (
    Values,
    element,
    fold_indices,
    fold_range,
    inline_region,
    with_element,
    with_sizes,
)
from fewbit.passes.linalg.building.tensors import (
    Size,
    as_index,
    dynamic,
    empty,
    index_constant,
    sizes_of,
    tensor_type,
)

INDEX_BITS = 62
"""More than the rounds of any tensor that fits into memory."""


@dataclass(frozen=True)
class LowerSort(ModulePass):
    """Turn sorting into rounds of merges."""

    name = "lower-sort"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(op, {SortOp: _sort})


def _sort(op: SortOp) -> Values | None:
    if op.inputs:
        return None
    sizes = sizes_of(op.outputs[0])
    merge = _Merge(op.region, op.dimension.value.data, sizes)
    rounds = _rounds(merge.count)

    def step(at: Sequence[Size], carried: Values) -> Values:
        number, *lane, place = at
        return merge.step(as_index(number), lane, as_index(place), carried)

    start = [_in_first_half(with_sizes(column, sizes), sizes) for column in op.outputs]
    read = [index_constant(0)] * 2
    others = [size for i, size in enumerate(sizes) if i != merge.axis]
    results = fold_indices([rounds, *others, merge.count], [*start, *read], step)
    half = (
        rounds % 2 if isinstance(rounds, int) else arith.RemUIOp(rounds, index_constant(2)).result
    )
    return [_half(column, half, sizes) for column in results[: len(start)]]


def _rounds(count: Size) -> Size:
    """Return how often a run of one must be doubled until it has all elements."""
    if isinstance(count, int):
        return max(count - 1, 0).bit_length()

    def step(number: SSAValue, rounds: Values) -> Values:
        another = _compare("slt", _power_of_2(number), count)
        return [_select(another, arith.AddiOp(rounds[0], index_constant(1)).result, rounds[0])]

    return fold_range(INDEX_BITS, [index_constant(0)], step)[0]


def _power_of_2(exponent: SSAValue) -> SSAValue:
    return arith.ShLIOp(index_constant(1), exponent).result


def _in_first_half(column: SSAValue, sizes: Sequence[Size]) -> SSAValue:
    both = empty([2, *sizes], mico.element_type(column.type))
    return tensor.InsertSliceOp.get(
        column,
        both,
        static_sizes=[1, *mico.shape_of(column.type)],
        static_offsets=[0] * (len(sizes) + 1),
        sizes=dynamic(sizes),
    ).result


def _half(both: SSAValue, half: Size, sizes: Sequence[Size]) -> SSAValue:
    type = tensor_type(sizes, mico.element_type(both.type))
    offsets, ones = [half, *[0] * len(sizes)], [1] * (len(sizes) + 1)
    return tensor.ExtractSliceOp(both, offsets, [1, *sizes], ones, type).result


@dataclass(frozen=True)
class _Merge:
    stays: Region
    """Whether one element may stand before another."""
    axis: int
    sizes: Sequence[Size]

    @property
    def count(self) -> Size:
        return self.sizes[self.axis]

    def step(
        self, number: SSAValue, lane: Sequence[Size], place: SSAValue, carried: Values
    ) -> Values:
        """Write one place of the result of a round."""
        *columns, left, right = carried
        source = arith.RemUIOp(number, index_constant(2)).result
        target = arith.SubiOp(index_constant(1), source).result
        run, count = _power_of_2(number), as_index(self.count)
        both = arith.AddiOp(run, run).result
        within = arith.RemUIOp(place, both).result
        first = arith.SubiOp(place, within).result
        middle = arith.MinUIOp(arith.AddiOp(first, run).result, count).result
        end = arith.MinUIOp(arith.AddiOp(first, both).result, count).result
        begins = _compare("eq", within, index_constant(0))
        left, right = _select(begins, first, left), _select(begins, middle, right)

        lefts = self._read(columns, source, lane, left)
        rights = self._read(columns, source, lane, right)
        rest_left, rest_right = _compare("ult", left, middle), _compare("ult", right, end)
        precedes = arith.AndIOp(self._stays(rights, lefts), _not(self._stays(lefts, rights))).result
        wanted = arith.OrIOp(precedes, _not(rest_left)).result
        takes_right = arith.AndIOp(rest_right, wanted).result

        results = [
            with_element(column, self._index(target, lane, place), _select(takes_right, b, a))
            for column, a, b in zip(columns, lefts, rights, strict=True)
        ]
        next_left = arith.AddiOp(left, index_constant(1)).result
        next_right = arith.AddiOp(right, index_constant(1)).result
        return [
            *results,
            _select(takes_right, left, next_left),
            _select(takes_right, next_right, right),
        ]

    def _index(self, half: SSAValue, lane: Sequence[Size], place: SSAValue) -> list[Size]:
        return [half, *lane[: self.axis], place, *lane[self.axis :]]

    def _read(
        self, columns: Values, half: SSAValue, lane: Sequence[Size], place: SSAValue
    ) -> list[SSAValue]:
        """Read at a place, or at the last one where a run has been read to its end."""
        last = arith.SubiOp(as_index(self.count), index_constant(1)).result
        inside = arith.MinUIOp(place, last).result
        return [element(column, self._index(half, lane, inside)) for column in columns]

    def _stays(self, first: Values, second: Values) -> SSAValue:
        pairs = [value for pair in zip(first, second, strict=True) for value in pair]
        return inline_region(self.stays, pairs)[0]


def _compare(predicate: str, a: SSAValue, b: Size) -> SSAValue:
    return arith.CmpiOp(a, as_index(b), predicate).result


def _select(condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
    return arith.SelectOp(condition, yes, no).result


def _not(value: SSAValue) -> SSAValue:
    return arith.XOrIOp(value, arith.ConstantOp(IntegerAttr(1, i1)).result).result
