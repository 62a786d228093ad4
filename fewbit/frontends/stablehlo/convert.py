"""The table of StableHLO ops that have an op of ours.

A converter gives what the op's results are bound to; None where this case is not ours after all,
which leaves the op to `expand` and `islands`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from fewbit.dialects import mico
from fewbit.frontends.stablehlo.constants import Constant
from fewbit.frontends.stablehlo.dense import one_of_each
from fewbit.frontends.stablehlo.emit import Bound, Emitter, Transposed
from fewbit.frontends.stablehlo.layers import convolution, dot_general, embedding, pad, take_step
from fewbit.frontends.stablehlo.ops import Op, TensorType, Value
from fewbit.frontends.stablehlo.transposed import transposed_island

Converter = Callable[[Emitter, Op], "Sequence[Bound] | None"]

CONVERTERS: dict[str, Converter] = {
    "dot_general": dot_general,
    "convolution": convolution,
    "gather": embedding,
    "pad": pad,
}
SHARDING = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape")


def convert(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    converter = CONVERTERS.get(op.kind)
    return None if converter is None else converter(emitter, op)


def converts(*kinds: str) -> Callable[[Converter], Converter]:
    def add(converter: Converter) -> Converter:
        for kind in kinds:
            CONVERTERS[kind] = converter
        return converter

    return add


@converts("add", "multiply", "subtract", "divide")
def arithmetic(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    if not op.result.tensor.is_float:
        return None
    taken = take_step(emitter, op)
    if taken is not None:
        return taken
    if op.kind not in ("add", "multiply"):
        return _elementwise(emitter, op)
    kind = mico.AddOp if op.kind == "add" else mico.MulOp
    constants = [emitter.constant(operand) for operand in op.operands]
    if not any(constants):
        tensors = _alike(emitter, op.operands)
        if tensors is None:
            return None
        result = emitter.add(kind.of(*(t.tensor for t in tensors))).results[0]
        return [Transposed(result, tensors[0].order)]
    if all(constants) or any(c is not None and c.splat is not None for c in constants):
        return _elementwise(emitter, op)
    other, constant = op.operands, constants
    value = other[1] if constant[0] is not None else other[0]
    known = constant[0] or constant[1]
    assert known is not None
    transposed = emitter.transposed(value)
    data = known.rearrange(_in_order(one_of_each(known.array), transposed.order))
    result = emitter.add(
        kind.of(transposed.tensor, emitter.write_constant(data, _name(known)))
    ).results[0]
    return [Transposed(result, transposed.order)]


def _name(constant: Constant) -> str | None:
    names = [leaf.name for leaf in constant.leaves() if leaf.name is not None]
    return names[0] if len(names) == 1 else None


def _in_order(array: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """An array in the dimensions of a value, in those of the tensor that it is the transpose of."""
    return array.transpose([order.index(d) for d in range(len(order))])


def _alike(emitter: Emitter, values: Sequence[Value]) -> list[Transposed] | None:
    """Tensors in one order of dimensions, that of the first; None where that takes transposes."""
    tensors = [emitter.transposed(value) for value in values]
    if len({tensor.order for tensor in tensors}) == 1:
        return tensors
    return [Transposed.plain(emitter.plain(t), len(t.order)) for t in tensors]


ELEMENTWISE = frozenset((
    "abs", "cbrt", "ceil", "clamp", "compare", "convert", "cosine", "divide", "exponential",
    "exponential_minus_one", "floor", "is_finite", "log", "log_plus_one", "logistic", "maximum",
    "minimum", "negate", "power", "remainder", "round_nearest_afz", "round_nearest_even",
    "rsqrt", "select", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "add", "multiply",
    "and", "or", "xor", "not",
))  # fmt: skip
"""Ops that compute each element alone, and so work in any order of dimensions."""


@converts(*(ELEMENTWISE - {"add", "multiply", "subtract", "divide", "maximum", "minimum", "clamp"}))
def _elementwise(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    """In the order in which the operands lie, where they agree."""
    if op.word("compare_type") == "TOTALORDER":
        return None
    orders = {
        emitter.transposed(operand).order
        for operand in op.operands
        if emitter.constant(operand) is None and operand.tensor.shape == op.result.tensor.shape
    }
    if len(orders) != 1 or any(
        o.tensor.shape not in ((), op.result.tensor.shape) for o in op.operands
    ):
        return None
    (order,) = orders
    if order == tuple(range(len(order))):
        return None
    return [transposed_island(emitter, op, order)]


def _splat(emitter: Emitter, value: Value) -> float | None:
    constant = emitter.constant(value)
    splat = None if constant is None else constant.splat
    return None if splat is None else float(splat)


def _unary(emitter: Emitter, kind: type[mico.LayerOp], value: Value) -> Sequence[Bound]:
    transposed = emitter.transposed(value)
    return [Transposed(emitter.add(kind.of(transposed.tensor)).results[0], transposed.order)]


@converts("maximum")
def maximum(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    if op.result.tensor.is_float:
        for value, other in (op.operands, reversed(op.operands)):
            if _splat(emitter, other) == 0 and emitter.constant(value) is None:
                return _unary(emitter, mico.ReluOp, value)
    return _elementwise(emitter, op)


@converts("minimum")
def minimum(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    """The upper bound of a relu6."""
    if op.result.tensor.is_float:
        for value, other in (op.operands, reversed(op.operands)):
            if _splat(emitter, other) != 6 or emitter.constant(value) is not None:
                continue
            transposed = emitter.transposed(value)
            relu = transposed.tensor.owner
            if isinstance(relu, mico.ReluOp) and value.uses == 1:
                result = emitter.add(mico.Relu6Op.of(relu.input))
                return [Transposed(result.results[0], transposed.order)]
    return _elementwise(emitter, op)


@converts("clamp")
def clamp(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    low, value, high = op.operands
    bounds = _splat(emitter, low), _splat(emitter, high)
    if bounds == (0, 6) and op.result.tensor.is_float:
        return _unary(emitter, mico.Relu6Op, value)
    return _elementwise(emitter, op)


@converts("transpose")
def transpose(emitter: Emitter, op: Op) -> Sequence[Bound]:
    return [emitter.transposed(op.operands[0]).then(op.integers("permutation"))]


@converts("reshape")
def reshape(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    if op.result.tensor.size == 0 or op.result.tensor.rank == 0:
        return None
    return _reshape(emitter, op.operands[0], op.result.tensor)


def _reshape(emitter: Emitter, value: Value, type: TensorType) -> Sequence[Bound]:
    if value.tensor.shape == type.shape:
        return [emitter.transposed(value)]
    result = mico.ReshapeOp.of(emitter.value(value), shape=type.shape)
    return [Transposed.plain(emitter.add(result).results[0], type.rank)]


@converts("broadcast_in_dim")
def broadcast(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    """One that only adds dimensions of size 1 is a reshape."""
    places = op.integers("broadcast_dimensions")
    given, wanted = op.operands[0].tensor, op.result.tensor
    if given.size != wanted.size or list(places) != sorted(places) or given.rank == 0:
        return None
    return _reshape(emitter, op.operands[0], wanted) if given.size else None


@converts("concatenate")
def concatenate(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    if op.result.tensor.size == 0:
        return None
    values = [value for value in op.operands if value.tensor.size]
    tensors = _alike(emitter, values)
    assert tensors is not None
    axis = tensors[0].order[op.integer("dimension")]
    result = emitter.add(mico.ConcatOp.of(*(t.tensor for t in tensors), dim=axis))
    return [Transposed(result.results[0], tensors[0].order)]


@converts("optimization_barrier")
def identity(emitter: Emitter, op: Op) -> Sequence[Bound]:
    return [emitter.bound(operand) for operand in op.operands]


def is_annotation(op: Op) -> bool:
    """Annotations of how tensors are sharded over devices mean nothing on one device."""
    return op.word("call_target_name") in SHARDING


@converts("custom_call")
def custom_call(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    return identity(emitter, op) if is_annotation(op) else None


@converts("batch_norm_inference")
def batch_norm(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    rank, feature = op.result.tensor.rank, op.integer("feature_index")
    if rank < 2 or op.result.tensor.element == "f64":
        return None
    order = [
        0 if feature else 1,
        feature,
        *(d for d in range(rank) if d not in (0 if feature else 1, feature)),
    ]
    input = emitter.value(op.operands[0], order)
    parameters: list[SSAValue] = []
    for operand in op.operands[1:]:
        constant = emitter.constant(operand)
        named = None if constant is None else _name(constant)
        parameters.append(
            emitter.value(operand) if constant is None else emitter.write_constant(constant, named)
        )
    eps = float(np.float32(op.attributes["epsilon"].partition(":")[0]).astype(str))
    result = emitter.add(mico.BatchNormOp.of(input, *parameters, eps=eps))
    return [Transposed(result.results[0], tuple(order.index(d) for d in range(rank)))]


@converts("reduce_window")
def max_pool(emitter: Emitter, op: Op) -> Sequence[Bound] | None:
    if len(op.operands) != 2 or op.operands[0].tensor.rank != 4:
        return None
    type = op.operands[0].tensor
    initial = _splat(emitter, op.operands[1])
    body = op.regions[0]
    kinds = [inner.kind for inner in body.ops[:-1]]
    least = -np.inf if type.is_float else float(np.iinfo(type.dtype).min)
    if kinds != ["maximum"] or initial != least or type.is_unsigned or type.element == "i1":
        return None
    window = op.integers("window_dimensions")
    strides = op.integers("window_strides", [1] * 4)
    padding = op.integers("padding", [0] * 8)
    dilation = op.integers("window_dilations", [1] * 4)
    if any(d != 1 for d in op.integers("base_dilations", [1] * 4)) or min(padding) < 0:
        return None
    still = [
        d for d in range(4)
        if window[d] == strides[d] == dilation[d] == 1 and not any(padding[2 * d : 2 * d + 2])
    ]  # fmt: skip
    order = next((o for o in ([0, 3, 1, 2], [0, 1, 2, 3]) if set(o[:2]) <= set(still)), None)
    if order is None or op.result.tensor.size == 0:
        return None
    spatial = order[2:]
    result = mico.MaxPool2dOp.of(
        emitter.value(op.operands[0], order),
        kernel_size=[window[d] for d in spatial],
        stride=[strides[d] for d in spatial],
        padding=[padding[2 * d + side] for d in spatial for side in (0, 1)],
        dilation=[dilation[d] for d in spatial],
    )
    return [Transposed(emitter.add(result).results[0], tuple(order.index(d) for d in range(4)))]
