"""Layers and poolings as ops of the `kernel` dialect, between transposes to channels-last.

A layer that quantizes its input is first split in two, as `lower-activation-quant` does; the
quantization is an op of its own, so that `propagate-layout` can move transposes past it. A layer of
integers hands its scales and bias to the kernel; the bias of one that gives accumulators is i32. A
few-bit weight of float activations is dequantized, which `fold_weights` does once. A 1-d
convolution is one with a height of 1. What no kernel computes is left as it is: floats other than
f32, integers with zero points, convolutions with scales of groups, integers times floats,
quantization to more than 2 bits by means, and pooling that is dilated or of accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from fewbit.dialects import kernel, mico
from fewbit.dialects.mico.layers import ConvolutionOp
from fewbit.dialects.mico.pooling import PoolOp
from fewbit.dialects.mico.syntax import ints
from fewbit.passes.linalg.building.driver import lower_ops
from fewbit.passes.linalg.building.loops import convert
from fewbit.passes.quant.lower_activation_quant import integer_layer

TO_LAST = (0, 2, 3, 1)
TO_FIRST = (0, 3, 1, 2)


@dataclass(frozen=True)
class SelectKernels(ModulePass):
    """Turn layers and poolings into ops that kernels compute, channels-last."""

    name = "select-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lower_ops(
            op,
            {
                mico.BitLinearOp: _linear,
                mico.BitConv2dOp: _conv2d,
                mico.BitConv1dOp: _conv1d,
                mico.MaxPool2dOp: _max_pool,
                mico.AvgPool2dOp: _avg_pool,
                mico.ActivationQuantOp: _activation_quant,
            },
        )


def _is_selected(op: mico.QuantizedLayerOp) -> bool:
    if op.act_width is None:
        given = [op.input, op.weight] if op.bias is None else [op.input, op.weight, op.bias]
        return all(mico.element_width(v.type) or mico.element_type(v.type) == f32 for v in given)
    if op.weight_width is None:
        return False
    if op.granularity[0] == "group" and not isinstance(op, mico.BitLinearOp):
        return False
    return op.act_zero_point is None and op.weight_zero_point is None


def _linear(op: mico.BitLinearOp) -> Sequence[SSAValue] | None:
    if not _is_selected(op):
        return None
    if (decomposed := integer_layer(op)) is not None:
        return decomposed
    y = kernel.MatmulOp.of(
        op.input,
        _weight(op),
        **_epilogue(op),
        result_types=[op.result.type],
    )
    return [y.result]


def _conv2d(op: mico.BitConv2dOp) -> Sequence[SSAValue] | None:
    if not _is_selected(op):
        return None
    if (decomposed := integer_layer(op)) is not None:
        return decomposed
    return [_convolve(op, op.input, _weight(op))]


def _conv1d(op: mico.BitConv1dOp) -> Sequence[SSAValue] | None:
    if not _is_selected(op):
        return None
    if (decomposed := integer_layer(op)) is not None:
        return decomposed
    y = _convolve(op, _with_height(op.input), _with_height(_weight(op)))
    return [mico.ReshapeOp.of(y, shape=(0, 0, -1), result_types=[op.result.type]).result]


def _with_height(value: SSAValue) -> SSAValue:
    """Reshape N x C x L to N x C x 1 x L."""
    n, c, length = mico.shape_of(value.type)
    type = TensorType(mico.element_type(value.type), (n, c, 1, length))
    return mico.ReshapeOp.of(value, shape=(0, 0, 1, -1), result_types=[type]).result


def _convolve(op: ConvolutionOp, x: SSAValue, weight: SSAValue) -> SSAValue:
    """Return the channels-first result of a convolution of one or two dimensions."""
    flat = op.RANK == 1
    n, channels, *spatial = mico.shape_of(op.result.type)
    result = (n, *([1] if flat else []), *spatial, channels)
    y = kernel.Conv2dOp.of(
        transpose(x, TO_LAST),
        weight,
        **_epilogue(op),
        stride=[*([1] if flat else []), *ints(op.stride)],
        padding=[*([0, 0] if flat else []), *ints(op.padding)],
        dilation=[*([1] if flat else []), *ints(op.dilation)],
        groups=op.groups,
        result_types=[TensorType(mico.element_type(op.result.type), result)],
    )
    return transpose(y.result, TO_FIRST)


def transpose(value: SSAValue, permutation: Sequence[int]) -> SSAValue:
    return mico.TransposeOp.of(value, permutation=permutation).result


def _weight(op: mico.QuantizedLayerOp) -> SSAValue:
    """Return the weight in the elements that the kernel multiplies."""
    if op.act_width is not None or op.weight_width is None:
        return op.weight
    assert op.weight_scale is not None
    return mico.DequantizeOp.of(
        op.weight,
        op.weight_scale,
        zero_point=op.weight_zero_point,
        offset=op.weight_offset,
        result_types=[TensorType(f32, mico.shape_of(op.weight.type))],
    ).result


def _epilogue(op: mico.QuantizedLayerOp) -> dict[str, SSAValue | None]:
    """Return the operands of the kernel's epilogue."""
    if op.gives_accumulators:
        return {"bias": op.bias}
    bias = None if op.bias is None else convert(op.bias, f32)
    if op.act_width is None:
        return {"bias": bias}
    return {
        "x_scale": op.act_scale,
        "weight_scale": op.weight_scale,
        "weight_offset": op.weight_offset,
        "bias": bias,
    }


def _max_pool(op: mico.MaxPool2dOp) -> Sequence[SSAValue] | None:
    return _pool(op, "max") if ints(op.dilation) == (1, 1) else None


def _avg_pool(op: mico.AvgPool2dOp) -> Sequence[SSAValue] | None:
    return _pool(op, "average", count_include_pad=op.count_include_pad)


def _pool(op: PoolOp, kind: str, **more: Attribute) -> Sequence[SSAValue] | None:
    x, result = op.operands[0], op.results[0].type
    element = mico.element_type(x.type)
    is_largest_integer = kind == "max" and mico.element_width(x.type) is not None
    if element != f32 and not is_largest_integer:
        return None
    n, channels, height, width = mico.shape_of(result)
    y = kernel.Pool2dOp.of(
        transpose(x, TO_LAST),
        kind=kind,
        kernel_size=op.kernel_size,
        stride=op.stride,
        padding=op.padding,
        ceil_mode=op.ceil_mode,
        result_types=[TensorType(element, (n, height, width, channels))],
        **more,
    )
    return [transpose(y.result, TO_FIRST)]


def _activation_quant(op: mico.ActivationQuantOp) -> Sequence[SSAValue] | None:
    """Select quantization by the largest magnitude, or below 3 bits by the mean."""
    is_narrow = mico.read_width(op.bits).bits < 3
    if op.scale is None or (op.mode.data != "max" and not is_narrow):
        return None
    if mico.element_type(op.input.type) != f32:
        return None
    return kernel.QuantizeRowsOp.of(
        op.input,
        bits=op.bits,
        granularity=op.granularity,
        result_types=op.result_types,
    ).results
