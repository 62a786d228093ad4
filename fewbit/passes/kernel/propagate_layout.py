"""Move transposes down, past ops that do not care for the layout, until they meet their inverse.

`select-kernels` puts a transpose on both sides of each kernel: to channels-last in front of it, and
back behind it. Here the latter sink: op(transpose(x)) becomes transpose(op(x)), so that what stands
between two kernels works on channels-last tensors, and the pair cancels. An operand that is not
transposed gets the inverse, which costs nothing where it is a constant of channels. Transposes
that move only sizes of 1 are reshapes, and those are free. What sinks is a transpose that brings
the last dimension to the channels' place; all others stay where they are.

Every rule keeps the bits of each element, but means and sums may be added up in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, UnrealizedConversionCastOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import dce

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.elementwise import BinaryOp, UnaryOp
from fewbit.dialects.mico.shapes import DYNAMIC, axis, size
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.kernel.layout.generics import permuted_generic
from fewbit.passes.kernel.layout.reshapes import groups_of, reshape_to, simpler_reshape
from fewbit.passes.kernel.layout.transposed import Transposed, sinking
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.tensors import as_index, as_type, size_of


@dataclass(frozen=True)
class PropagateLayout(ModulePass):
    """Move transposes past ops that work in any layout, and cancel them."""

    name = "propagate-layout"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.TransposeOp: _transpose,
                mico.ReshapeOp: _reshape,
                mico.FlattenOp: _reshape,
                UnaryOp: _unary,
                BinaryOp: _binary,
                mico.ConcatOp: _concat,
                mico.BatchNormOp: _batch_norm,
                mico.ActivationQuantOp: _activation_quant,
                kernel.QuantizeRowsOp: _activation_quant,
                mico.QuantizeOp: _quantize,
                mico.DequantizeOp: _quantize,
                mico.RequantizeOp: _requantize,
                tensor.DimOp: _dim,
                tensor.CastOp: _cast,
                UnrealizedConversionCastOp: _cast,
                linalg.GenericOp: _generic,
            },
        )
        dce(op)


def _transpose(op: mico.TransposeOp) -> Sequence[SSAValue] | None:
    order, shape = ints(op.permutation), mico.shape_of(op.input.type)
    if order == tuple(range(len(order))):
        return [as_type(op.input, op.result.type)]
    inner = op.input.owner
    if isinstance(inner, mico.TransposeOp):
        composed = [ints(inner.permutation)[d] for d in order]
        types = [op.result.type]
        return [mico.TransposeOp.of(inner.input, permutation=composed, result_types=types).result]
    moved = [d for d in order if shape[d] != 1]
    if moved != sorted(moved):
        return None
    kept = next(i for i, d in enumerate(order) if i != d)
    reshaped = reshape_to(op.input, op.result.type, kept)
    return None if reshaped is None else [reshaped]


def _reshape(op: mico.ReshapeOp | mico.FlattenOp) -> Sequence[SSAValue] | None:
    simpler = simpler_reshape(op)
    if simpler is not None:
        return simpler
    transposed = sinking(op.input)
    return None if transposed is None else _regroup(op, transposed)


def _regroup(
    op: mico.ReshapeOp | mico.FlattenOp, transposed: Transposed
) -> Sequence[SSAValue] | None:
    """Return a reshape that joins or splits only what is adjacent in the source's layout too."""
    groups = groups_of(op)
    if groups is None:
        return None
    moved = [([transposed.order[d] for d in group.before], group.after) for group in groups]
    if any(axes != list(range(axes[0], axes[0] + len(axes))) for axes, _ in moved):
        return None
    moved.sort()
    alone = (axes == [i] and len(after) == 1 for i, (axes, after) in enumerate(moved))
    kept = sum(takewhile(bool, alone))
    order = [d for _, after in moved for d in after]
    shape = mico.shape_of(op.result.type)
    direct = TensorType(mico.element_type(op.result.type), [shape[d] for d in order])
    reshaped = reshape_to(transposed.source, direct, kept)
    if reshaped is None:
        return None
    back = [order.index(d) for d in range(len(order))]
    types = [op.result.type]
    return [mico.TransposeOp.of(reshaped, permutation=back, result_types=types).result]


def _unary(op: UnaryOp) -> Sequence[SSAValue] | None:
    transposed = sinking(op.input)
    if transposed is None:
        return None
    types = [transposed.type_back(op.result.type)]
    inner = type(op).of(transposed.source, result_types=types, **op.properties)
    return [transposed.forward(inner.result, op.result.type)]


def _binary(op: BinaryOp) -> Sequence[SSAValue] | None:
    rank = len(mico.shape_of(op.result.type))
    candidates = (sinking(value) for value in op.operands if len(mico.shape_of(value.type)) == rank)
    transposed = next((t for t in candidates if t is not None), None)
    if transposed is None or not all(_goes_back(value, transposed) for value in op.operands):
        return None
    sides = [_side(value, rank, transposed) for value in op.operands]
    inner = type(op).of(*sides, result_types=[transposed.type_back(op.result.type)])
    return [transposed.forward(inner.result, op.result.type)]


def _goes_back(value: SSAValue, transposed: Transposed) -> bool:
    """Return whether an operand may get the inverse transpose.

    That of an image is worth it, since it is likely to stand in front of a kernel already. In three
    dimensions, where models have transposes of their own, only a vector is transposed.
    """
    shape = mico.shape_of(value.type)
    if len(shape) < len(transposed.order):
        return DYNAMIC not in shape
    if sinking(value) is not None or len(shape) > 3:
        return True
    return sum(extent != 1 for extent in shape) <= 1


def _side(value: SSAValue, rank: int, transposed: Transposed) -> SSAValue:
    """Return an operand that broadcasts, as it does in the layout of the source."""
    shape = mico.shape_of(value.type)
    if size(shape) == 1:
        return value
    if len(shape) < rank:
        value = mico.ReshapeOp.of(value, shape=(*[1] * (rank - len(shape)), *shape)).result
    return transposed.back(value)


def _concat(op: mico.ConcatOp) -> Sequence[SSAValue] | None:
    transposed = next((t for value in op.inputs if (t := sinking(value)) is not None), None)
    if transposed is None or not all(_goes_back(value, transposed) for value in op.inputs):
        return None
    dim = transposed.order[axis(op.dim.value.data, len(transposed.order), "dim")]
    types = [transposed.type_back(op.result.type)]
    inner = mico.ConcatOp.of(*map(transposed.back, op.inputs), dim=dim, result_types=types)
    return [transposed.forward(inner.result, op.result.type)]


def _batch_norm(op: mico.BatchNormOp) -> Sequence[SSAValue] | None:
    """Flatten to rows of channels, whose dimension 1 is what a batch norm expects."""
    transposed = sinking(op.input)
    if transposed is None:
        return None
    type = transposed.type_back(op.result.type)
    *rows, channels = mico.shape_of(type)
    if channels == DYNAMIC or rows.count(DYNAMIC) > 1:
        return None
    flat = TensorType(type.element_type, [size(rows), channels])
    x = mico.ReshapeOp.of(transposed.source, shape=(-1, channels), result_types=[flat])
    y = mico.BatchNormOp.of(
        x, op.weight, op.bias, op.mean, op.variance, eps=op.eps, result_types=[flat]
    )
    wanted = [-1 if extent == DYNAMIC else extent for extent in (*rows, channels)]
    unfolded = mico.ReshapeOp.of(y, shape=wanted, result_types=[type])
    return [transposed.forward(unfolded.result, op.result.type)]


def _activation_quant(
    op: mico.ActivationQuantOp | kernel.QuantizeRowsOp,
) -> Sequence[SSAValue] | None:
    transposed = sinking(op.operands[0])
    if transposed is None or op.granularity.data == "row":
        return None
    types = [transposed.type_back(op.result.type), *(r.type for r in op.results[1:])]
    inner = type(op).of(transposed.source, result_types=types, **op.properties)
    return [transposed.forward(inner.result, op.result.type), *inner.results[1:]]


def _quantize(op: mico.QuantizeOp | mico.DequantizeOp) -> Sequence[SSAValue] | None:
    transposed = sinking(op.input)
    scales = [op.scale] if op.zero_point is None else [op.scale, op.zero_point]
    if transposed is None or any(len(mico.shape_of(scale.type)) > 1 for scale in scales):
        return None
    types = [transposed.type_back(op.result.type)]
    inner = type(op).of(transposed.source, op.scale, zero_point=op.zero_point, result_types=types)
    return [transposed.forward(inner.result, op.result.type)]


def _requantize(op: mico.RequantizeOp) -> Sequence[SSAValue] | None:
    transposed = sinking(op.input)
    if transposed is None:
        return None
    inner = mico.RequantizeOp.of(
        transposed.source,
        op.multiplier,
        shift=op.shift,
        zero_point=op.zero_point,
        axis=transposed.order[axis(op.axis.value.data, len(transposed.order), "axis")],
        result_types=[transposed.type_back(op.result.type)],
    )
    return [transposed.forward(inner.result, op.result.type)]


def _cast(op: tensor.CastOp | UnrealizedConversionCastOp) -> Sequence[SSAValue] | None:
    if len(op.operands) != 1 or len(op.results) != 1:
        return None
    transposed, result = sinking(op.operands[0]), op.results[0].type
    if transposed is None or len(mico.shape_of(result)) != len(transposed.order):
        return None
    type = transposed.type_back(result)
    if isinstance(op, tensor.CastOp):
        inner = tensor.CastOp(transposed.source, type).dest
    else:
        inner = UnrealizedConversionCastOp.get([transposed.source], [type]).results[0]
    return [transposed.forward(inner, result)]


def _dim(op: tensor.DimOp) -> Sequence[SSAValue] | None:
    """Take the size of a transposed value from its source, so that the transpose can go."""
    transposed, index = sinking(op.source), op.index.owner
    if transposed is None or not isinstance(index, arith.ConstantOp):
        return None
    if not isinstance(index.value, IntegerAttr):
        return None
    return [as_index(size_of(transposed.source, transposed.order[index.value.value.data]))]


def _generic(op: linalg.GenericOp) -> Sequence[SSAValue] | None:
    candidates = {i: t for i, value in enumerate(op.inputs) if (t := sinking(value)) is not None}
    transposed = next(iter(candidates.values()), None)
    if transposed is None:
        return None
    sources = {i: t.source for i, t in candidates.items() if t.order == transposed.order}
    permuted = permuted_generic(op, sources, transposed.order)
    if permuted is None:
        return None
    if not permuted.has_moved:
        return [permuted.value]
    return [transposed.forward(permuted.value, op.results[0].type)]
