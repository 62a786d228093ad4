"""Make layers of contractions with a constant operand, however a model writes them.

A layer is what a recipe names. Front ends know the layers of their framework; `x @ w`, `addmm`, an
einsum or a stack of matrices arrives as a contraction of linalg. If one of its operands depends on
constants alone, that one is a weight, and the contraction is the linear layer of it, transposed to
output by input channels. Matrices that lie stacked in one constant,
as those of experts do, are layers of their own. Data only moves here; `fold-layer-weights` makes
a constant of what the weight was moved from.

Left alone are sums of one term, such as frequencies by positions, and a vector, which is no weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeGuard, cast

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.arith import ConstantOp as ArithConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    Float64Type,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from fewbit.dialects.mico import (
    AddOp,
    BitLinearOp,
    ConcatOp,
    GetConstantOp,
    ReshapeOp,
    TransposeOp,
    element_type,
    shape_of,
)
from fewbit.passes.graph.calls import is_effect_free
from fewbit.passes.graph.constant_values import constant_reads
from fewbit.passes.graph.contraction import (
    Contraction,
    Loops,
    Operand,
    contraction_of,
    find_rounded,
    is_same_element,
)

STACKED = 256
"""How many matrices of a stack may be layers of their own."""


@dataclass(frozen=True)
class RecognizeLayers(ModulePass):
    """Make layers of contractions with a constant operand."""

    name = "recognize-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            _recognize(each)


def _recognize(op: Operation) -> None:
    contraction = contraction_of(op)
    if contraction is None:
        return
    for weight, input in (contraction.operands[::-1], contraction.operands):
        if _is_weight(weight) and constant_reads(input.value) is None:
            for layer in _to_layers(op, contraction, input, weight):
                _fuse_bias(_keep_rank(layer))
            return


def _is_weight(operand: Operand) -> bool:
    if len(shape_of(operand.value.type)) < 2:
        return False
    reads = constant_reads(operand.value)
    return bool(reads) and 0 not in shape_of(operand.value.type)


@dataclass(frozen=True)
class _Roles:
    """The loops of a contraction, by what they do."""

    batch: Loops
    """Those of the weight, the input and the result: each step has a matrix of its own."""
    rows: Loops
    columns: Loops
    sums: Loops
    units: Loops
    """Dimensions of size 1 of the weight, which others have too."""

    @property
    def result(self) -> Loops:
        return (*self.batch, *self.rows, *self.columns)


def _roles(input: Operand, weight: Operand, result: Operand) -> _Roles | None:
    """Return what each loop does; None where a sum is not over both operands."""
    sizes = weight.sizes
    units = tuple(d for d in weight.loops if sizes[d] == 1 and d in input.loops)
    own = [d for d in weight.loops if d not in units]
    rows = tuple(d for d in result.loops if d not in own)
    columns = tuple(d for d in result.loops if d in own and d not in input.loops)
    batch = tuple(d for d in result.loops if d in own and d in input.loops)
    sums = tuple(d for d in input.loops if d not in result.loops)
    if not set(rows) <= set(input.loops) or not set(sums) <= set(weight.loops):
        return None
    if not set(own) <= {*batch, *columns, *sums}:
        return None
    return _Roles(batch, rows, columns, sums, units)


def _to_layers(
    op: Operation, given: Contraction, input: Operand, weight: Operand
) -> list[BitLinearOp]:
    """Replace a contraction by layers; return them, or none where it stays."""
    roles = _roles(input, weight, given.result)
    out = _result(given, input)
    if roles is None or out is None or not is_same_element(input.value, weight.value):
        return []
    if isinstance(element_type(weight.value.type), Float64Type):
        return []
    sizes = weight.sizes
    stack, outputs, terms = (
        prod(sizes[d] for d in loops) for loops in (roles.batch, roles.columns, roles.sums)
    )
    if terms == 1 or stack > STACKED or (stack > 1 and outputs == 1):
        return []
    if len(roles.batch) > 1 and any(input.sizes[d] == DYNAMIC_INDEX for d in roles.rows):
        return []
    build = _Builder(op)
    y = build.layers(input, weight, roles)
    y = build.transpose(y, [roles.result.index(d) for d in given.result.loops])
    y.name_hint = out.name_hint
    out.replace_all_uses_with(y)
    _erase_unused(cast(Operation, out.owner))
    return build.made


def _result(given: Contraction, input: Operand) -> SSAValue | None:
    """Return the result in the input's type: sums of 16-bit floats are rounded behind them."""
    out = given.result.value
    if not is_same_element(input.value, out):
        narrow = find_rounded(out)
        return narrow if narrow is not None and is_same_element(input.value, narrow) else None
    return out


def _erase_unused(op: Operation) -> None:
    stack = [op]
    while stack:
        each = stack.pop()
        if each.parent is None or any(result.uses for result in each.results):
            continue
        if is_effect_free(each):
            stack += [v.owner for v in each.operands if isinstance(v.owner, Operation)]
            Rewriter.erase_op(each)


def _keep_rank(layer: BitLinearOp) -> BitLinearOp:
    """Leave out reshapes that make rows one dimension before a layer, and undo it behind."""
    before, after = layer.input.owner, _only_reader(layer.result)
    if not isinstance(before, ReshapeOp) or not _is_reshape(after):
        return layer
    source, result = before.input, after.results[0]
    rows, terms = shape_of(source.type)[:-1], shape_of(source.type)[-1:]
    if terms != shape_of(layer.input.type)[-1:] or rows != shape_of(result.type)[:-1]:
        return layer
    # Of two sizes that are not known, it is not known whether they are in the same order.
    if rows.count(DYNAMIC_INDEX) > 1 or _last(result) != _last(layer.result):
        return layer
    direct = BitLinearOp.of(source, layer.weight, result_types=[result.type])
    direct.location, direct.result.name_hint = layer.location, result.name_hint
    Rewriter.insert_op(direct, InsertPoint.before(layer))
    result.replace_all_uses_with(direct.result)
    _erase_unused(after)
    return direct


def _fuse_bias(layer: BitLinearOp) -> None:
    """Let a layer add the constant vector that is added behind it."""
    channels, value = _last(layer.result), layer.result
    reader = _only_reader(value)
    while _is_reshape(reader) and _last(reader.results[0]) == channels:
        value = reader.results[0]
        reader = _only_reader(value)
    if not isinstance(reader, AddOp) or reader.result.type != value.type:
        return
    bias = next((operand.owner for operand in reader.operands if operand is not value), None)
    if not isinstance(bias, GetConstantOp) or shape_of(bias.result.type) != (channels,):
        return
    read = GetConstantOp(bias.symbol, bias.result.type)
    read.result.name_hint = bias.result.name_hint
    type = layer.result.type
    biased = BitLinearOp.of(layer.input, layer.weight, read.result, result_types=[type])
    read.location = biased.location = layer.location
    biased.result.name_hint = layer.result.name_hint
    Rewriter.insert_op([read, biased], InsertPoint.before(layer))
    reader.result.replace_all_uses_with(value)
    Rewriter.erase_op(reader)
    layer.result.replace_all_uses_with(biased.result)
    Rewriter.erase_op(layer)
    _erase_unused(bias)


def _only_reader(value: SSAValue) -> Operation | None:
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _is_reshape(op: Operation | None) -> TypeGuard[Operation]:
    return isinstance(op, ReshapeOp | tensor.ReshapeOp)


def _last(value: SSAValue) -> int:
    """Return the size of the innermost dimension."""
    return shape_of(value.type)[-1] if shape_of(value.type) else DYNAMIC_INDEX


class _Builder:
    """Writes ops before another, at its location."""

    def __init__(self, before: Operation) -> None:
        self.before = before
        self.made: list[BitLinearOp] = []

    def layers(self, input: Operand, weight: Operand, roles: _Roles) -> SSAValue:
        """Write the layer, or those of a stack; the result has the loops of `roles.result`."""
        known = {**weight.sizes, **input.sizes}
        stack, outputs, terms = (
            prod(weight.sizes[d] for d in loops)
            for loops in (roles.batch, roles.columns, roles.sums)
        )
        rows = [known[d] for d in roles.rows]
        across = [input.loops.index(d) for d in (*roles.batch, *roles.rows, *roles.sums)]
        x = self.transpose(input.value, across)
        # A dimension of size 1 may be one of the sums as well.
        moved = dict.fromkeys((*roles.batch, *roles.columns, *roles.sums, *roles.units))
        w = self.transpose(weight.value, [weight.loops.index(d) for d in moved])
        if roles.batch:
            x = self.reshape(x, [stack, *rows, terms])
            w = self.reshape(w, [stack, outputs, terms])
            parts = [self._layer(x, w, i) for i in range(stack)]
            y = self.add(ConcatOp.of(*parts, dim=0))
        else:
            y = self._linear(self.reshape(x, [*rows, terms]), self.reshape(w, [outputs, terms]))
        return self.reshape(y, [known[d] for d in roles.result])

    def _layer(self, x: SSAValue, w: SSAValue, number: int) -> SSAValue:
        """Write the layer of one matrix of a stack, on its part of the input."""
        part = self.slice(x, number, 1)
        _, outputs, terms = shape_of(w.type)
        matrix = self.reshape(self.slice(w, number, 1), [outputs, terms])
        return self._linear(part, matrix)

    def _linear(self, x: SSAValue, w: SSAValue) -> SSAValue:
        self.made.append(BitLinearOp.of(x, w))
        return self.add(self.made[-1])

    def add(self, op: Operation) -> SSAValue:
        op.location = self.before.location
        Rewriter.insert_op(op, InsertPoint.before(self.before))
        return op.results[0]

    def transpose(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        if list(order) == sorted(order):
            return value
        return self.add(TransposeOp.of(value, permutation=list(order)))

    def reshape(self, value: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """Reshape; sizes that are not known stay at their places."""
        if tuple(sizes) == shape_of(value.type):
            return value
        kept = [0 if size == DYNAMIC_INDEX else size for size in sizes]
        return self.add(ReshapeOp.of(value, shape=kept))

    def slice(self, value: SSAValue, start: int, size: int) -> SSAValue:
        """Take a part of the first dimension."""
        shape = (size, *shape_of(value.type)[1:])
        offsets = [start, *[0] * (len(shape) - 1)]
        sizes = [
            self.add(tensor.DimOp(value, self._index(d))) if extent == DYNAMIC_INDEX else extent
            for d, extent in enumerate(shape)
        ]
        type = TensorType(element_type(value.type), shape)
        return self.add(tensor.ExtractSliceOp(value, offsets, sizes, [1] * len(shape), type))

    def _index(self, number: int) -> SSAValue:
        return self.add(ArithConstantOp(IntegerAttr(number, IndexType())))
