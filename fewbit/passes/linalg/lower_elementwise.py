"""Elementwise ops and softmax as loops, by the operations of `numerics/floats.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import math
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico.elementwise import ActivationOp, BinaryOp, UnaryOp
from fewbit.dialects.mico.shapes import DYNAMIC, axis
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.formulas import activate
from fewbit.passes.linalg.building.loops import (
    Binary,
    Unary,
    apply,
    convert,
    elementwise,
    generic,
    loops,
    read,
    read_broadcast,
)
from fewbit.passes.linalg.building.tensors import Size, as_type, integers, size_of, sizes_of


@dataclass(frozen=True)
class LowerElementwise(ModulePass):
    """Turn activation functions, add, mul and softmax into loops."""

    name = "lower-elementwise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.ReluOp: _relu,
                mico.Relu6Op: lambda op: _unary(op, _relu6),
                ActivationOp: lambda op: _unary(op, lambda x: activate(x, op.activation)),
                mico.SoftmaxOp: _softmax,
                mico.AddOp: lambda op: _binary(op, s.add),
                mico.MulOp: lambda op: _binary(op, s.mul),
            },
        )


def _unary(op: UnaryOp, function: Unary) -> Sequence[SSAValue]:
    """Apply `function` to every element, in f32 or wider."""
    element = mico.element_type(op.input.type)
    wide = s.working_type(element)

    def body(x: SSAValue) -> SSAValue:
        return s.to_float(function(s.to_float(x, wide)), element)

    return [as_type(apply(op.input, element, body), op.result.type)]


def _relu(op: mico.ReluOp) -> Sequence[SSAValue]:
    x = integers(op.input)
    element = mico.element_type(x.type)
    positive = apply(x, element, lambda v: s.larger(v, s.constant(0, element)))
    return [as_type(positive, op.result.type)]


def _relu6(x: SSAValue) -> SSAValue:
    return s.smaller(s.larger(x, s.constant(0, x.type)), s.constant(6, x.type))


def _binary(op: BinaryOp, function: Binary) -> Sequence[SSAValue]:
    shape = mico.shape_of(op.output_type())
    sizes = [_broadcast_size(op, shape, d) for d in range(len(shape))]
    index = loops(len(sizes))
    inputs = [read_broadcast(op.lhs, index), read_broadcast(op.rhs, index)]
    element = mico.element_type(op.lhs.type)
    return [as_type(elementwise(inputs, sizes, element, function), op.result.type)]


def _broadcast_size(op: BinaryOp, shape: Sequence[int], dim: int) -> Size:
    """Return the size of a dimension of the result, from an operand that has it."""
    if shape[dim] != DYNAMIC:
        return shape[dim]
    for value in (op.lhs, op.rhs):
        given = mico.shape_of(value.type)
        own = dim - (len(shape) - len(given))
        if own >= 0 and given[own] == DYNAMIC:
            return size_of(value, own)
    raise AssertionError("a dynamic size comes from an operand")


def _softmax(op: mico.SoftmaxOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.input.type)
    dim = axis(op.dim.value.data, len(mico.shape_of(op.input.type)), "dim")
    wide = softmax_along(convert(op.input, s.working_type(element)), dim)
    return [as_type(convert(wide, element), op.result.type)]


def softmax_along(x: SSAValue, dim: int) -> SSAValue:
    """Return exp(x - max x) / Σ exp(x - max x); the sum is one of f64, rounded once."""
    element = mico.element_type(x.type)
    sizes = sizes_of(x)
    index = loops(len(sizes))
    kept, outer = index[:dim] + index[dim + 1 :], sizes[:dim] + sizes[dim + 1 :]
    all_of = read(x, *index)
    # Of a row with a NaN all results are NaN, whatever is said to be the largest.
    most = generic([all_of], kept, outer, element, s.larger_of_numbers, start=-s.INFINITY)
    powers = elementwise(
        [all_of, read(most, *kept)], sizes, element, lambda v, m: math.ExpOp(s.sub(v, m)).result
    )
    each = read(powers, *index)
    total = generic([each], kept, outer, f64, lambda p, t: s.add(t, s.to_float(p, f64)), start=0)
    rounded = read(convert(total, element), *kept)
    return elementwise([each, rounded], sizes, element, s.div)
