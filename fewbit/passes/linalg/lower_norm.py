"""Normalizations as loops, by the operations of `numerics/floats.py`.

Statistics come first, summed in f64 and rounded once, then one pass over all elements in f32. A
batch norm, whose statistics are known, is computed in f64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import Unary, apply, elementwise, generic, loops, read
from fewbit.passes.linalg.building.quantized import count_of
from fewbit.passes.linalg.building.tensors import as_type, sizes_of


@dataclass(frozen=True)
class LowerNorm(ModulePass):
    """Turn normalizations into loops."""

    name = "lower-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.BatchNormOp: _batch_norm,
                mico.LayerNormOp: _layer_norm,
                mico.RmsNormOp: _rms_norm,
            },
        )


def _batch_norm(op: mico.BatchNormOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.input.type)
    wide = f64
    sizes = sizes_of(op.input)
    index = loops(len(sizes))
    (channel,) = loops(1)

    def factor_of(weight: SSAValue, variance: SSAValue) -> SSAValue:
        return s.div(s.to_float(weight, wide), _deviation(s.to_float(variance, wide), op.eps))

    inputs = [read(op.weight, channel), read(op.variance, channel)]
    factor = elementwise(inputs, sizes_of(op.weight), wide, factor_of)

    def body(x: SSAValue, mean: SSAValue, factor: SSAValue, bias: SSAValue) -> SSAValue:
        subtract_zero_point = s.sub(s.to_float(x, wide), s.to_float(mean, wide))
        return s.to_float(
            s.add(s.mul(subtract_zero_point, factor), s.to_float(bias, wide)), element
        )

    channels = [read(value, index[1]) for value in (op.mean, factor, op.bias)]
    y = elementwise([read(op.input, *index), *channels], sizes, element, body)
    return [as_type(y, op.result.type)]


def _layer_norm(op: mico.LayerNormOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.input.type)
    wide = s.working_type(element)
    x, lead = op.input, _lead(op)
    sizes = sizes_of(x)
    index = loops(len(sizes))
    mean = _mean_over(x, lead, wide, lambda v: v)
    middle = elementwise(
        [read(x, *index), read(mean, *index[:lead])],
        sizes,
        wide,
        lambda v, m: s.sub(s.to_float(v, wide), m),
    )
    variance = _mean_over(middle, lead, wide, lambda v: s.mul(v, v))
    parameters = [op.weight] if op.bias is None else [op.weight, op.bias]

    def body(v: SSAValue, variance: SSAValue, weight: SSAValue, *bias: SSAValue) -> SSAValue:
        y = s.mul(s.div(v, _deviation(variance, op.eps)), s.to_float(weight, wide))
        for b in bias:
            y = s.add(y, s.to_float(b, wide))
        return s.to_float(y, element)

    inputs = [
        read(middle, *index),
        read(variance, *index[:lead]),
        *(read(p, *index[lead:]) for p in parameters),
    ]
    return [as_type(elementwise(inputs, sizes, element, body), op.result.type)]


def _rms_norm(op: mico.RmsNormOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.input.type)
    wide = s.working_type(element)
    lead = _lead(op)
    sizes = sizes_of(op.input)
    index = loops(len(sizes))
    mean_square = _mean_over(op.input, lead, wide, lambda v: s.mul(v, v))

    def body(x: SSAValue, square: SSAValue, *weight: SSAValue) -> SSAValue:
        y = s.div(s.to_float(x, wide), _deviation(square, op.eps))
        for w in weight:
            y = s.mul(y, s.to_float(w, wide))
        return s.to_float(y, element)

    inputs = [read(op.input, *index), read(mean_square, *index[:lead])]
    if op.weight is not None:
        inputs.append(read(op.weight, *index[lead:]))
    return [as_type(elementwise(inputs, sizes, element, body), op.result.type)]


def _lead(op: mico.LayerNormOp | mico.RmsNormOp) -> int:
    """Return how many dimensions are not normalized over."""
    return len(mico.shape_of(op.input.type)) - op.dims.value.data


def _mean_over(x: SSAValue, lead: int, wide: Attribute, function: Unary) -> SSAValue:
    """Return the mean of `function` over all but the first `lead` dimensions, rounded once."""
    sizes = sizes_of(x)
    index = loops(len(sizes))
    inputs = [read(x, *index)]

    def body(value: SSAValue, total: SSAValue) -> SSAValue:
        return s.add(total, function(s.to_float(value, f64)))

    total = generic(inputs, index[:lead], sizes[:lead], f64, body, start=0)
    count = count_of(sizes[lead:], f64)
    return apply(total, wide, lambda t: s.to_float(s.div(t, count), wide))


def _deviation(variance: SSAValue, eps: FloatAttr) -> SSAValue:
    """Return √(variance + eps)."""
    return math.SqrtOp(s.add(variance, s.constant(eps.value.data, variance.type))).result
