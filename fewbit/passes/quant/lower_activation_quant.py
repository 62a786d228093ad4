"""Activation quantization as loops, split off the layers that it is part of.

A layer with `act_bits` and a float input becomes `activation_quant` (or `quantize`, where the
scale is given) and a layer on integers. What a target has kernels for is then a layer on integers
and nothing else. `activation_quant` itself becomes a reduction for the scale, and a rounding.
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
        rows = op.rows_shape(shape)
        by = "row" if isinstance(op, mico.BitLinearOp) else "sample"
        mode = "max" if op.act_mode is None else op.act_mode.data
        quantized = mico.ActivationQuantOp.of(
            op.input,
            bits=width,
            mode=mode,
            granularity=by,
            result_types=[few, TensorType(f32, rows)],
        )
        scale = quantized.scale
    else:
        quantized = mico.QuantizeOp.of(
            op.input, scale, zero_point=op.act_zero_point, result_types=[few]
        )
    attributes = {k: v for k, v in op.properties.items() if k not in (SEGMENTS, "act_mode")}
    result = mico.shape_of(op.result.type)
    layer = type(op).of(
        quantized.result,
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


def _activation_quant(op: mico.ActivationQuantOp) -> Sequence[SSAValue]:
    lead = len(op.scale_shape())
    width = mico.read_width(op.bits)
    values, scale = dynamic_quantization(op.input, lead, width, op.mode.data)
    if op.scale is None:
        element = mico.element_type(op.result.type)
        return [as_type(dequantize(values, scale, None, element), op.result.type)]
    return [as_type(values, op.result.type), as_type(scale, op.scale.type)]
