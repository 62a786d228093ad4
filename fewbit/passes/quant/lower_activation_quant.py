"""Activation quantization as loops, split off the layers that it is part of.

A layer with `act_bits` and a float input becomes `activation_quant` (or `quantize`, where the
scale is given) and a layer on integers. What a target has kernels for is then a layer on integers
and nothing else. Scales for groups are those of rows, of the input with a dimension for the groups.
`activation_quant` itself becomes a reduction for the scale, and a rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import mico
from fewbit.dialects.mico.syntax import SEGMENTS
from fewbit.numerics.widths import Width
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import convert
from fewbit.passes.linalg.building.quantized import dequantize, dynamic_quantization
from fewbit.passes.linalg.building.tensors import as_type


@dataclass(frozen=True)
class LowerActivationQuant(ModulePass):
    """Split activation quantization off layers, and turn it into loops."""

    name = "lower-activation-quant"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.BitLinearOp: integer_layer,
                mico.BitConv1dOp: integer_layer,
                mico.BitConv2dOp: integer_layer,
                mico.ActivationQuantOp: _activation_quant,
            },
        )


def integer_layer(op: mico.QuantizedLayerOp) -> Sequence[SSAValue] | None:
    """Split a layer that quantizes into quantization and a layer on integers; else None."""
    width = op.act_width
    if width is None or mico.element_width(op.input.type) is not None:
        return None
    shape = mico.shape_of(op.input.type)
    few = TensorType(mico.few_bit_type(width), shape)
    scale = op.act_scale
    if scale is None:
        values, scale = _quantize_rows(op, width)
    else:
        values = mico.QuantizeOp.of(
            op.input, scale, zero_point=op.act_zero_point, result_types=[few]
        ).result
    done = (SEGMENTS, "act_mode", "act_group")
    attributes = {k: v for k, v in op.properties.items() if k not in done}
    result = mico.shape_of(op.result.type)
    layer = type(op).of(
        values,
        op.weight,
        op.bias,
        weight_scale=op.weight_scale,
        weight_zero_point=op.weight_zero_point,
        weight_offset=op.weight_offset,
        act_scale=scale,
        act_zero_point=op.act_zero_point,
        result_types=[TensorType(f32, result)],
        **attributes,
    )
    return [convert(layer.result, mico.element_type(op.result.type))]


def _quantize_rows(op: mico.QuantizedLayerOp, width: Width) -> tuple[SSAValue, SSAValue]:
    """Return a layer's input as integers and scales that are found at run time."""
    x, shape = op.input, mico.shape_of(op.input.type)
    is_linear = isinstance(op, mico.BitLinearOp)
    rows = op.rows_shape(shape)
    if is_linear and op.act_group is not None:
        size = op.act_group.value.data
        rows = (*rows, mico.shape_of(op.weight.type)[1] // size)
        x = _reshape(x, (*rows, size), (*[0] * (len(rows) - 1), rows[-1], size))
    element = mico.few_bit_type(width)
    quantized = mico.ActivationQuantOp.of(
        x,
        bits=width,
        mode="max" if op.act_mode is None else op.act_mode.data,
        granularity="row" if is_linear else "sample",
        result_types=[TensorType(element, mico.shape_of(x.type)), TensorType(f32, rows)],
    )
    assert quantized.scale is not None
    if x is op.input:
        return quantized.result, quantized.scale
    return _reshape(quantized.result, shape, (*[0] * (len(shape) - 1), -1)), quantized.scale


def _reshape(value: SSAValue, shape: Sequence[int], spelled: Sequence[int]) -> SSAValue:
    type = TensorType(mico.element_type(value.type), shape)
    return mico.ReshapeOp.of(value, shape=spelled, result_types=[type]).result


def _activation_quant(op: mico.ActivationQuantOp) -> Sequence[SSAValue]:
    lead = len(op.scale_shape())
    width = mico.read_width(op.bits)
    values, scale = dynamic_quantization(op.input, lead, width, op.mode.data)
    if op.scale is None:
        element = mico.element_type(op.result.type)
        return [as_type(dequantize(values, scale, None, element), op.result.type)]
    return [as_type(values, op.result.type), as_type(scale, op.scale.type)]
