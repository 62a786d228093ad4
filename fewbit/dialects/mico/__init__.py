"""The `mico` dialect: mixed-precision layers, 1 to 8 bits.

Types and attributes first, then ops in the order of a program: constants, quantization, layers, and
what stands between layers. `syntax` is the text of all of them, `shapes` their pure shape rules.
"""

from __future__ import annotations

from xdsl.ir import Dialect

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

Mico = Dialect(
    "mico",
    [
        ConstantOp,
        GetConstantOp,
        WeightQuantOp,
        ActivationQuantOp,
        QuantizeOp,
        DequantizeOp,
        RequantizeOp,
        BundleOp,
        UnbundleOp,
        BitLinearOp,
        BitConv2dOp,
        BitConv1dOp,
        EmbeddingOp,
        AttentionOp,
        ReluOp,
        Relu6Op,
        GeluOp,
        SiluOp,
        SoftmaxOp,
        AddOp,
        MulOp,
        BatchNormOp,
        LayerNormOp,
        RmsNormOp,
        MaxPool2dOp,
        AvgPool2dOp,
        FlattenOp,
        ReshapeOp,
        TransposeOp,
        ConcatOp,
    ],
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
