"""Quantization with static or dynamic scales, dequantization and requantization, as loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f32, i8, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico.shapes import axis
from fewbit.numerics.widths import Width
from fewbit.passes.linalg.building import scalars as s
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import Read, elementwise, loops, read, read_leading
from fewbit.passes.linalg.building.quantized import (
    asymmetric_quantization,
    count_from_zero,
    dequantize,
    dynamic_quantization,
    rounding_shift,
    runs_of,
    static_quantization,
)
from fewbit.passes.linalg.building.tensors import as_type, integers, sizes_of


@dataclass(frozen=True)
class LowerQuantization(ModulePass):
    """Turn quantize, dequantize, requantize and weight_quant into loops."""

    name = "lower-quantization"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.QuantizeOp: _quantize,
                mico.DequantizeOp: _dequantize,
                mico.RequantizeOp: _requantize,
                mico.WeightQuantOp: _weight_quant,
            },
        )


def _width(op: mico.QuantizeOp | mico.RequantizeOp) -> Width:
    return cast(Width, mico.element_width(op.result.type))


def _quantize(op: mico.QuantizeOp) -> Sequence[SSAValue]:
    values = static_quantization(op.input, op.scale, op.zero_point, _width(op))
    return [as_type(values, op.result.type)]


def _dequantize(op: mico.DequantizeOp) -> Sequence[SSAValue]:
    element = mico.element_type(op.result.type)
    values = integers(op.input)
    if op.offset is not None:
        values = count_from_zero(values, cast(Width, mico.element_width(op.input.type)))
    values = dequantize(values, op.scale, op.zero_point, element, op.offset)
    return [as_type(values, op.result.type)]


def _weight_quant(op: mico.WeightQuantOp) -> Sequence[SSAValue]:
    width = mico.read_width(op.bits)
    runs = runs_of(op.weight, op.scale_shape())
    if op.zero_point is None:
        parts = dynamic_quantization(runs.tensor, runs.lead, width, op.mode.data)
    else:
        parts = asymmetric_quantization(runs.tensor, runs.lead, width)
    values, *scales = parts
    return [
        as_type(part, result.type)
        for part, result in zip((runs.restore(values), *scales), op.results, strict=True)
    ]


def _requantize(op: mico.RequantizeOp) -> Sequence[SSAValue]:
    width = _width(op)
    sizes = sizes_of(op.input)
    index = loops(len(sizes))
    along = [index[axis(op.axis.value.data, len(sizes), "axis")]] if sizes else []
    inputs: list[Read] = [read(op.input, *index), read_leading(op.multiplier, along)]
    if op.shift is not None and not width.is_binary:
        inputs.append(read_leading(op.shift, along))
    if op.zero_point is not None:
        inputs.append(read_leading(op.zero_point, []))

    def body(acc: SSAValue, multiplier: SSAValue, *more: SSAValue) -> SSAValue:
        if width.is_binary:
            return _product_sign(acc, multiplier)
        if op.shift is None:
            whole, zero = s.round_even(s.mul(s.to_float(acc), multiplier)), more
        else:
            product = s.mul(s.to_integer(acc, i64), s.to_integer(multiplier, i64))
            whole, zero = rounding_shift(product, s.to_integer(more[0], i64)), more[1:]
        for z in zero:
            whole = s.add(whole, s.to_float(z) if whole.type == f32 else s.to_integer(z, i64))
        return s.to_integer(s.clamp(whole, width), i8)

    return [as_type(elementwise(inputs, sizes, i8, body), op.result.type)]


def _product_sign(acc: SSAValue, multiplier: SSAValue) -> SSAValue:
    """Return the sign of acc · multiplier, +1 for 0, by their signs: nothing can underflow."""
    zero, none = s.constant(0, acc.type), s.constant(0, multiplier.type)
    down = arith.AndIOp(s.compare(acc, "lt", zero), s.compare(multiplier, "gt", none))
    up = arith.AndIOp(s.compare(acc, "gt", zero), s.compare(multiplier, "lt", none))
    return s.sign_of(arith.OrIOp(down, up).result)
