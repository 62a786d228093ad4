"""The `mico` dialect: mixed-precision layers, 1 to 8 bits.

Types and attributes first, then ops in the order of a program: constants, quantization, layers, and
what stands between layers. `syntax` is the text of all of them, `shapes` their pure shape rules.
"""

from __future__ import annotations

from types import ModuleType

from xdsl.ir import Dialect, Operation

from fewbit.dialects.mico import (
    attention,
    constants,
    elementwise,
    layers,
    layout,
    normalization,
    pooling,
    quantization,
    rotation,
)
from fewbit.dialects.mico.attention import AttentionOp
from fewbit.dialects.mico.attributes import PackedAttr, RefAttr
from fewbit.dialects.mico.constants import ConstantOp, GetConstantOp
from fewbit.dialects.mico.constraints import read_width, width_attr
from fewbit.dialects.mico.elementwise import (
    AddOp,
    GeluOp,
    MulOp,
    Relu6Op,
    ReluOp,
    SiluOp,
    SoftmaxOp,
)
from fewbit.dialects.mico.layers import (
    BitConv1dOp,
    BitConv2dOp,
    BitLinearOp,
    EmbeddingOp,
    QuantizedLayerOp,
)
from fewbit.dialects.mico.layout import ConcatOp, FlattenOp, ReshapeOp, TransposeOp
from fewbit.dialects.mico.normalization import BatchNormOp, LayerNormOp, RmsNormOp
from fewbit.dialects.mico.pooling import AvgPool2dOp, MaxPool2dOp
from fewbit.dialects.mico.quantization import (
    ActivationQuantOp,
    BundleOp,
    DequantizeOp,
    QuantizeOp,
    RequantizeOp,
    UnbundleOp,
    WeightQuantOp,
)
from fewbit.dialects.mico.rotation import HadamardOp
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.mico.types import (
    FewBitType,
    IntType,
    KVCacheType,
    QTensorType,
    TernaryType,
    element_type,
    element_width,
    few_bit_type,
    shape_of,
    width_of,
)


def _operations(module: ModuleType) -> list[type[Operation]]:
    """Return the ops that a module defines, in their order; what some of them share has no name."""
    classes = (value for value in vars(module).values() if isinstance(value, type))
    return [
        each
        for each in classes
        if issubclass(each, Operation)
        and each.__module__ == module.__name__
        and "name" in vars(each)
    ]


_MODULES = (
    constants,
    quantization,
    layers,
    attention,
    elementwise,
    normalization,
    rotation,
    pooling,
    layout,
)

Mico = Dialect(
    "mico",
    [op for module in _MODULES for op in _operations(module)],
    [IntType, TernaryType, QTensorType, KVCacheType, PackedAttr, RefAttr],
)

__all__ = [
    "ActivationQuantOp",
    "AddOp",
    "AttentionOp",
    "AvgPool2dOp",
    "BatchNormOp",
    "BitConv1dOp",
    "BitConv2dOp",
    "BitLinearOp",
    "BundleOp",
    "ConcatOp",
    "ConstantOp",
    "DequantizeOp",
    "EmbeddingOp",
    "FewBitType",
    "FlattenOp",
    "GeluOp",
    "GetConstantOp",
    "HadamardOp",
    "IntType",
    "KVCacheType",
    "LayerNormOp",
    "LayerOp",
    "MaxPool2dOp",
    "Mico",
    "MulOp",
    "PackedAttr",
    "QTensorType",
    "QuantizeOp",
    "QuantizedLayerOp",
    "RefAttr",
    "Relu6Op",
    "ReluOp",
    "RequantizeOp",
    "ReshapeOp",
    "RmsNormOp",
    "SiluOp",
    "SoftmaxOp",
    "TernaryType",
    "TransposeOp",
    "UnbundleOp",
    "WeightQuantOp",
    "element_type",
    "element_width",
    "few_bit_type",
    "read_width",
    "shape_of",
    "width_attr",
    "width_of",
]
