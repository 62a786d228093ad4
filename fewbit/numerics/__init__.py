"""The arithmetic of quantized networks in numpy: no IR, no torch.

Every other part of fewbit, the interpreter and all targets, must agree with what is computed here.
"""

from fewbit.numerics.activations import activation_scale_shape, quantize_activation
from fewbit.numerics.formulas import EPS
from fewbit.numerics.integer import (
    check_accumulator,
    conv1d,
    conv2d,
    conv2d_grouped,
    linear,
    linear_grouped,
)
from fewbit.numerics.layers import bitconv1d, bitconv2d, bitlinear
from fewbit.numerics.packing import pack, row_bytes, unpack
from fewbit.numerics.quantized import Quantized
from fewbit.numerics.requantize import FixedPoint, fixed_point, requantize, requantize_fixed
from fewbit.numerics.weights import quantize_weight, weight_scale_shape
from fewbit.numerics.widths import (
    WIDTHS,
    ActivationGranularity,
    Granularity,
    Mode,
    ScaleType,
    WeightMode,
    Width,
    WidthLike,
)

__all__ = [
    "EPS",
    "WIDTHS",
    "ActivationGranularity",
    "FixedPoint",
    "Granularity",
    "Mode",
    "Quantized",
    "ScaleType",
    "WeightMode",
    "Width",
    "WidthLike",
    "activation_scale_shape",
    "bitconv1d",
    "bitconv2d",
    "bitlinear",
    "check_accumulator",
    "conv1d",
    "conv2d",
    "conv2d_grouped",
    "fixed_point",
    "linear",
    "linear_grouped",
    "pack",
    "quantize_activation",
    "quantize_weight",
    "requantize",
    "requantize_fixed",
    "row_bytes",
    "unpack",
    "weight_scale_shape",
]
