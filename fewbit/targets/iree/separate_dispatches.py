"""Barriers between ops that IREE must not compute in one dispatch.

IREE fuses an op with what computes its operands. Some kinds of dispatches of IREE 3.13 are wrong:

- **One result, read in two ways.** In `m[:, None] * m[None, :]` of a reduction `m`, the elements of
  `m` that a thread has are those that the first read asks for; only the diagonal of the product is
  right. So a result that one elementwise op reads at different coordinates, itself or through
  elementwise ops and reshapes, is complete before it is read.
- **Ops that work in place.** `tm_tensor.sort` sorts the memory of its operand, even if the dispatch
  gives the operand as a result too. A barrier alone is no help where others read that memory: IREE
  takes what lies behind it for another tensor, and merges two ops before it that turn out equal,
  for instance when sizes do. So what such an op changes is a copy of its own, which a number behind
  a barrier makes different from all others. That also keeps IREE from computing indices once for
  all runs, of which the second would sort what the first has sorted. What nothing reads of the
  results, IREE would put on the stack, which does not hold a tensor of dynamic or large size; a
  barrier reads it.
- **Slices that are replaced.** `tensor.insert_slice` changes the memory of what it is given, even
  if a dispatch that comes after reads what was there. So it is given a copy where others read it.
- **Slices that are not dense.** Microkernels of matmuls and convolutions read neighbours: where a
  slice takes one of two elements, as `x[..., :1]`, they read both. Vectors that are gathered from
  such a slice, which `tensor.extract` becomes, do not compile. So such a slice is a copy.
- **Places within windows.** To find the place of a maximum, a reduction over windows reads the
  result of another one. IREE takes both into a dispatch, and does not distribute the first. So
  what was pooled is complete before it is read by a reduction, if by none of its loops.
- **Whether any or all are true.** Where IREE finds out that they are (of `x == x`, for integers),
  the reduction is one of nothing, and what nothing reads of a dispatch it puts on the stack, which
  does not hold a tensor of open or large size. So such truth values are complete before they are
  reduced.
- **Gathered elements that are reduced.** Where IREE finds out that all indices of a reduced loop
  are one (`i % 1`), the reduction is one of nothing, too. So what is gathered, of open or large
  size, is complete before it is reduced.
- **Single elements that are joined.** IREE makes a slice of one element a tensor of rank 0. Moving
  a reshape from behind a concatenation to before it, IREE reshapes that slice to more dimensions
  than the tensor has that it is taken from, which does not verify. So the element is a copy.

- **What comes after a loop.** IREE schedules dispatches in groups, and may take into one of them
  what a loop begins with and what reads its end, so that each waits for the other. A barrier
  behind the loop begins another group.

A barrier costs one pass over the tensor, and most programs have none. IREE does not see sizes
through it, so those that are dynamic are said behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

from xdsl.builder import Builder, ImplicitBuilder
from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    ArrayAttr,
    IntegerAttr,
    ModuleOp,
    TensorType,
    i1,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from fewbit.dialects.mico import GetConstantOp
from fewbit.dialects.mico.types import element_type
from fewbit.dialects.upstream.iree import OptimizationBarrierOp, TieShapeOp
from fewbit.dialects.upstream.tm_tensor import DestinationOperation
from fewbit.passes.linalg.building.loops import elementwise, loops, read
from fewbit.passes.linalg.building.tensors import full, sizes_of
from fewbit.toolchain.iree_devices import STACK

Coordinate: TypeAlias = int | AffineExpr | Operation | None
"""Where in one dimension a value is read: by a dimension of the reader; at its only element; or in
some other way, which is told apart by the op that it is due to."""
Read: TypeAlias = tuple[SSAValue, tuple[Coordinate, ...]]
"""A result that is computed from others, and where it is read."""

_WITHOUT_WORK = (tensor.EmptyOp, linalg.FillOp, arith.ConstantOp, GetConstantOp)


@dataclass(frozen=True)
class SeparateDispatches(ModulePass):
    """Put barriers where IREE would fuse ops into a dispatch that is wrong."""

    name = "separate-dispatches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, DestinationOperation):
                _own(each)
            elif isinstance(each, tensor.InsertSliceOp):
                _own_whole(each)
        reads = _Reads({})
        apart: dict[SSAValue, None] = {}
        for each in op.walk():
            if isinstance(each, DestinationOperation):
                apart |= dict.fromkeys(filter(_is_computed, each.operands))
                apart |= {result: None for result in each.results if not result.uses}
            elif isinstance(each, LinalgStructuredOperation) and not _reduces(each):
                apart |= dict.fromkeys(reads.at_different_places(each))
            elif isinstance(each, LinalgStructuredOperation):
                apart |= dict.fromkeys(_loose_slices(each.inputs))
                apart |= dict.fromkeys(_pooled_elements(each))
                apart |= dict.fromkeys(_unbounded_truths(each))
                for value in each.inputs:
                    apart |= dict.fromkeys(_unbounded_gathers(value))
            elif isinstance(each, tensor.ExtractOp):
                apart |= dict.fromkeys(_loose_slices([each.tensor]))
            elif isinstance(each, scf.ForOp | scf.WhileOp):
                apart |= {end: None for end in each.results if isinstance(end.type, TensorType)}
            elif isinstance(each, tensor.ConcatOp):
                apart |= dict.fromkeys(_single_elements(each))
        for value in apart:
            _complete(value)


def _own(op: DestinationOperation) -> None:
    """Let an op change copies of what it is given to change, which no other op reads."""
    first = len(op.inputs)
    for index, value in enumerate(op.outputs, first):
        if not isinstance(value.owner, _WITHOUT_WORK):
            op.operands[index] = _copy(value, op)


def _own_whole(op: tensor.InsertSliceOp) -> None:
    """Let an op replace a slice of a copy, if others read the whole or a part of it."""
    readers = {use.operation for use in op.dest.uses} - {op}
    if _is_computed(op.dest) and not all(isinstance(each, tensor.DimOp) for each in readers):
        op.operands[1] = _copy(op.dest, op)


def _copy(value: SSAValue, reader: Operation) -> SSAValue:
    """Return the tensor plus a zero, or times a one, of which IREE does not know what it is."""
    element = element_type(value.type)
    is_float = isinstance(element, AnyFloat)
    operation = arith.MulfOp if is_float else arith.AddiOp
    with ImplicitBuilder(Builder(InsertPoint.before(reader))):
        neutral = OptimizationBarrierOp(full([], element, 1 if is_float else 0)).outputs[0]
        return elementwise(
            [read(value, *loops(len(_sizes(value)))), read(neutral)],
            sizes_of(value),
            element,
            lambda x, y: operation(x, y).result,
        )


def _pooled_elements(op: LinalgStructuredOperation) -> Iterator[SSAValue]:
    """Yield what was pooled, of those that a reduction reads one element of at a time."""
    kinds = op.get_iterator_types()
    reduced = {
        AffineDimExpr(loop)
        for loop, kind in enumerate(kinds)
        if kind.data is IteratorType.REDUCTION
    }
    for value, map in zip(op.inputs, _maps(op), strict=False):
        source = _before_reshapes(value)
        if isinstance(source.owner, linalg.PoolingNchwMaxOp) and not reduced & {*map.results}:
            yield source


def _unbounded_truths(op: LinalgStructuredOperation) -> Iterator[SSAValue]:
    """Yield what is computed, of open or large size, and reduced to truth values."""
    if any(element_type(result.type) == i1 for result in op.results):
        yield from (value for value in op.inputs if _is_computed(value) and _is_unbounded(value))


def _unbounded_gathers(value: SSAValue) -> Iterator[SSAValue]:
    """Yield what is gathered, of open or large size, behind elementwise ops and reshapes."""
    value = _before_reshapes(value)
    op = value.owner
    if not isinstance(op, LinalgStructuredOperation) or _reduces(op):
        return
    if any(isinstance(each, tensor.ExtractOp) for each in op.walk()) and _is_unbounded(value):
        yield value
        return
    for each in op.inputs:
        yield from _unbounded_gathers(each)


def _is_unbounded(value: SSAValue) -> bool:
    """Tell whether a tensor may be larger than the stack."""
    sizes = _sizes(value)
    return DYNAMIC_INDEX in sizes or prod(sizes) > STACK


def _loose_slices(values: Sequence[SSAValue]) -> Iterator[SSAValue]:
    """Yield the slices whose innermost elements are no neighbours, of those that are read."""
    for value in map(_before_reshapes, values):
        if not all(map(_is_dense, _slices(value))):
            yield value


def _slices(value: SSAValue) -> Iterator[tensor.ExtractSliceOp]:
    """Yield a slice and those that it is a slice of, which IREE makes one."""
    while isinstance(value.owner, tensor.ExtractSliceOp):
        yield value.owner
        value = _before_reshapes(value.owner.source)


def _single_elements(op: tensor.ConcatOp) -> Iterator[SSAValue]:
    """Yield the slices of one element, of those that are joined."""
    for value in map(_before_reshapes, op.operands):
        if isinstance(value.owner, tensor.ExtractSliceOp) and all(
            size == 1 for size in value.owner.static_sizes.get_values()
        ):
            yield value


def _before_reshapes(value: SSAValue) -> SSAValue:
    """Return the value that reshapes made this one of."""
    while isinstance(value.owner, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        value = value.owner.src
    return value


def _is_dense(op: tensor.ExtractSliceOp) -> bool:
    """Tell whether the innermost dimension that is longer than 1 has its elements side by side."""
    sizes, strides = op.static_sizes.get_values(), op.static_strides.get_values()
    for whole, size, stride in zip(
        *map(reversed, (_sizes(op.source), sizes, strides)), strict=True
    ):
        if size != 1:
            return stride == 1
        if whole != 1:
            return all(each == 1 for each in sizes)
    return True


def _is_computed(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and not isinstance(value.op, _WITHOUT_WORK)


def _complete(value: SSAValue) -> None:
    """Let all who read a value read it behind a barrier."""
    assert isinstance(value, OpResult)
    axes = [axis for axis, size in enumerate(_sizes(value)) if size == DYNAMIC_INDEX]
    numbers = [arith.ConstantOp(IntegerAttr.from_index_int_value(axis)) for axis in axes]
    sizes = [tensor.DimOp(value, number) for number in numbers]
    barrier = OptimizationBarrierOp(value)
    whole = TieShapeOp(barrier.outputs[0], [size.result for size in sizes])
    added = [*numbers, *sizes, barrier, *([whole] if sizes else [])]
    for op in added:
        op.location = value.op.location
    Rewriter.insert_op(added, InsertPoint.after(value.op))
    value.replace_uses_with_if(
        whole.result if sizes else barrier.outputs[0], lambda use: use.operation not in added
    )


@dataclass(frozen=True)
class _Reads:
    """What values are computed from, within what IREE may fuse: elementwise ops and reshapes."""

    known: dict[SSAValue, frozenset[Read]]

    def at_different_places(self, op: LinalgStructuredOperation) -> Iterator[SSAValue]:
        """Yield the results that an op reads at more than one place."""
        places: dict[SSAValue, tuple[Coordinate, ...]] = {}
        for source, coordinates in self._of_operands(op):
            if places.setdefault(source, coordinates) != coordinates:
                yield source

    def of(self, value: SSAValue) -> frozenset[Read]:
        """Return the results behind a value, by coordinates of the value."""
        if value not in self.known:
            self.known[value] = frozenset(self._find(value))
        return self.known[value]

    def _find(self, value: SSAValue) -> Iterator[Read]:
        match value.owner:
            case tensor.ExpandShapeOp() as op:
                yield from self._through(op.src, _expand(op))
            case tensor.CollapseShapeOp() as op:
                yield from self._through(op.src, _collapse(op))
            case linalg.BroadcastOp() as op:
                new = op.dimensions.get_values()
                kept = [i for i in range(len(_sizes(value))) if i not in new]
                yield from self._through(op.input, kept)
            case LinalgStructuredOperation() as op if not _reduces(op):
                result = _maps(op)[len(op.inputs) + op.results.index(cast(OpResult, value))]
                loops = {expression: i for i, expression in enumerate(result.results)}
                for source, coordinates in self._of_operands(op):
                    # A loop of which the result has no dimension is none that the reader has.
                    yield source, tuple(_through_loop(op, loops, each) for each in coordinates)
            case LinalgStructuredOperation() | linalg.ReduceOp():
                yield value, _without_units(value, range(len(_sizes(value))))
            case _:
                return

    def _of_operands(self, op: LinalgStructuredOperation) -> Iterator[Read]:
        """Yield what an op's inputs are computed from, by its loops."""
        for operand, map in zip(op.inputs, _maps(op), strict=False):
            for source, coordinates in self.of(operand):
                yield source, _without_units(source, _pick(map.results, coordinates))

    def _through(self, operand: SSAValue, coordinates: Sequence[Coordinate]) -> Iterator[Read]:
        for source, inner in self.of(operand):
            yield source, _without_units(source, _pick(coordinates, inner))


def _pick(outer: Sequence[Coordinate], inner: Sequence[Coordinate]) -> list[Coordinate]:
    return [outer[each] if isinstance(each, int) else each for each in inner]


def _through_loop(
    op: Operation, loops: dict[AffineExpr, int], coordinate: Coordinate
) -> Coordinate:
    return loops.get(coordinate, op) if isinstance(coordinate, AffineExpr) else coordinate


def _without_units(source: SSAValue, coordinates: Sequence[Coordinate]) -> tuple[Coordinate, ...]:
    """Return coordinates without those that can only be 0."""
    sizes = _sizes(source)
    return tuple(None if size == 1 else at for size, at in zip(sizes, coordinates, strict=True))


def _expand(op: tensor.ExpandShapeOp) -> list[Coordinate]:
    """Return where a reader of an expanded tensor reads the tensor behind it."""
    sizes = _sizes(op.result)
    groups = [[i for i in group if sizes[i] != 1] for group in _groups(op.reassociation)]
    return [_only(op, group) for group in groups]


def _collapse(op: tensor.CollapseShapeOp) -> list[Coordinate]:
    """Return where a reader of a collapsed tensor reads the tensor behind it."""
    sizes = _sizes(op.src)
    coordinates: list[Coordinate] = [None] * len(sizes)
    for dimension, group in enumerate(_groups(op.reassociation)):
        longer = [i for i in group if sizes[i] != 1]
        for each in longer:
            coordinates[each] = dimension if len(longer) == 1 else op
    return coordinates


def _only(op: Operation, dimensions: Sequence[int]) -> Coordinate:
    if not dimensions:
        return None
    return dimensions[0] if len(dimensions) == 1 else op


def _groups(reassociation: ArrayAttr[ArrayAttr[IntegerAttr]]) -> list[list[int]]:
    return [[each.value.data for each in group] for group in reassociation]


def _sizes(value: SSAValue) -> tuple[int, ...]:
    return value.type.get_shape() if isa(value.type, TensorType[Attribute]) else ()


def _maps(op: LinalgStructuredOperation) -> list[AffineMap]:
    return [attribute.data for attribute in op.get_indexing_maps()]


def _reduces(op: LinalgStructuredOperation) -> bool:
    """Tell whether a result's element depends on several of an input's; IREE drops loops of 1."""
    kinds = op.get_iterator_types()
    loops = [i for i, kind in enumerate(kinds) if kind.data is not IteratorType.PARALLEL]
    if not loops:
        return False
    single = {
        expression
        for value, map in zip(op.operands, _maps(op), strict=False)
        for size, expression in zip(_sizes(value), map.results, strict=True)
        if size == 1
    }
    return any(AffineDimExpr(loop) not in single for loop in loops)
