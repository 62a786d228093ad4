"""What the quantized layers share: their factors, their contraction, and their epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerType, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fewbit.dialects.mico import QuantizedLayerOp, element_type, element_width, shape_of
from fewbit.numerics.widths import Width
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.loops import (
    Loops,
    Read,
    elementwise,
    generic,
    loops,
    read,
    read_leading,
)
from fewbit.passes.linalg.building.quantized import (
    count_from_zero,
    dequantize,
    subtract_zero_point,
)
from fewbit.passes.linalg.building.tensors import Size, integers, sizes_of


@dataclass(frozen=True)
class Factors:
    """The input and the weight of a layer, either both integers or both f32.

    Integers come without their zero points; their scales are `x_scale` and `w_scale`. Weights with
    offsets count from 0.
    """

    x: SSAValue
    w: SSAValue
    x_scale: SSAValue | None = None
    w_scale: SSAValue | None = None
    w_offset: SSAValue | None = None

    @property
    def are_integers(self) -> bool:
        return isinstance(element_type(self.x.type), IntegerType)

    @property
    def element(self) -> Attribute:
        """The type of accumulators."""
        return i32 if self.are_integers else f32

    @property
    def groups(self) -> int | None:
        """How many groups of a channel have a scale of their own."""
        shape = () if self.w_scale is None else shape_of(self.w_scale.type)
        return shape[1] if len(shape) == 2 else None


def factors_of(op: QuantizedLayerOp) -> Factors:
    """Return the factors as integers if both are; otherwise dequantize the one that is."""
    x, w = integers(op.input), integers(op.weight)
    x_few, w_few = (element_width(v.type) is not None for v in (op.input, op.weight))
    if op.weight_offset is not None:
        w = count_from_zero(w, cast(Width, op.weight_width))
    if x_few and w_few:
        return Factors(
            subtract_zero_point(x, op.act_zero_point),
            subtract_zero_point(w, op.weight_zero_point),
            op.act_scale,
            op.weight_scale,
            op.weight_offset,
        )
    if x_few:
        x = dequantize(x, cast(SSAValue, op.act_scale), op.act_zero_point)
    if w_few:
        scale = cast(SSAValue, op.weight_scale)
        w = dequantize(w, scale, op.weight_zero_point, offset=op.weight_offset)
    return Factors(x, w)


def contract(
    lhs: Read,
    rhs: Read,
    output: Loops,
    sizes: Sequence[Size],
    element: Attribute,
    *,
    fused: bool = False,
) -> SSAValue:
    """Return Σ lhs · rhs over the loops that the output lacks, both widened first.

    Products of floats are rounded, unless each is `fused` with the addition.
    """
    whole = s.integer_type(element)

    def widen(value: SSAValue) -> SSAValue:
        return s.to_float(value, element) if whole is None else s.to_integer(value, whole)

    def body(a: SSAValue, b: SSAValue, total: SSAValue) -> SSAValue:
        if fused and whole is None:
            return math.FmaOp(widen(a), widen(b), total).result
        return s.add(total, s.mul(widen(a), widen(b)))

    return generic([lhs, rhs], output, sizes, element, body, start=0)


def group_sum(
    partial: SSAValue,
    factors: Factors,
    output: Loops,
    group: AffineDimExpr,
    channel: AffineDimExpr,
    row_sums: SSAValue | None = None,
) -> SSAValue:
    """Return Σ acc · s_x · s_w over groups, in order; `partial` is indexed by output, group.

    With offsets, a group adds acc · s_x · s_w + Σ u_x · s_x · m; `row_sums` are indexed by rows and
    group, as are scales of rows that each group has its own of.
    """
    assert factors.x_scale is not None
    assert factors.w_scale is not None

    def body(acc: SSAValue, x: SSAValue, w: SSAValue, *more: SSAValue) -> SSAValue:
        *shift, total = more
        term = s.mul(s.mul(s.to_float(acc), x), w)
        if shift:
            row_sum, offset = shift
            term = s.add(term, s.mul(s.mul(s.to_float(row_sum), x), offset))
        return s.add(total, term)

    in_groups = len(shape_of(factors.x_scale.type)) == len(shape_of(factors.x.type))
    rows = [*output[:-1], group]
    inputs = [
        read(partial, *output, group),
        read(factors.x_scale, *rows) if in_groups else read_leading(factors.x_scale, output),
        read(factors.w_scale, channel, group),
    ]
    if row_sums is not None and factors.w_offset is not None:
        inputs += [
            read(row_sums, *rows),
            read(factors.w_offset, channel, group),
        ]
    return generic(inputs, output, sizes_of(partial)[:-1], f32, body, start=0)


def finish(op: QuantizedLayerOp, total: SSAValue, factors: Factors, axis: int) -> SSAValue:
    """Return the layer's result from its accumulators: scaled, with its bias, in its type.

    `axis` is the dimension of the output channels. Sums of groups are scaled already.
    """
    sizes = sizes_of(total)
    index = loops(len(sizes))
    channel = [index[axis]]
    scales: list[Read] = []
    if factors.are_integers and not op.gives_accumulators and factors.groups is None:
        assert factors.x_scale is not None
        assert factors.w_scale is not None
        scales = [read_leading(factors.x_scale, index), read_leading(factors.w_scale, channel)]
    bias = [] if op.bias is None else [read(op.bias, *channel)]
    element = element_type(op.result.type)
    if not scales and not bias and element_type(total.type) == element:
        return total

    def body(value: SSAValue, *more: SSAValue) -> SSAValue:
        if op.gives_accumulators:
            return s.add(value, more[0])
        value = s.to_float(value)
        for scale in more[: len(scales)]:
            value = s.mul(value, scale)
        for term in more[len(scales) :]:
            value = s.add(value, s.to_float(term))
        return s.to_float(value, element)

    return elementwise([read(total, *index), *scales, *bias], sizes, element, body)
