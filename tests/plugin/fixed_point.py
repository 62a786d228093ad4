"""The `fixed` dialect: numbers with a binary point, as an example of a dialect outside the tree.

A value of `!fixed.point<8, 5>` has 8 bits, 5 of them behind the point: it is an 8-bit integer
times 2^-5. That is a quantized tensor whose scale is known, so the dialect lowers to `mico`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    TensorType,
    UnrealizedConversionCastOp,
    f32,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    result_def,
    traits_def,
)
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import Pure
from xdsl.transforms.reconcile_unrealized_casts import ReconcileUnrealizedCastsPass
from xdsl.universe import Universe
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects import mico
from fewbit.interpreter import Frame, Value, register, register_type
from fewbit.ir.rewrite import rewrite


@irdl_attr_definition
class PointType(ParametrizedAttribute, TypeAttribute):
    """A number of `bits` bits, of which `fraction` are behind the binary point."""

    name = "fixed.point"

    bits: IntegerAttr[IntegerType] = param_def()
    fraction: IntegerAttr[IntegerType] = param_def()

    def __init__(self, bits: int, fraction: int) -> None:
        super().__init__(IntegerAttr(bits, i64), IntegerAttr(fraction, i64))

    @property
    def scale(self) -> float:
        return 2.0**-self.fraction.value.data

    def verify(self) -> None:
        if not 2 <= self.bits.value.data <= 8:
            raise VerifyException("a fixed-point number has 2 to 8 bits")
        if not 0 <= self.fraction.value.data < self.bits.value.data:
            raise VerifyException("the fraction has fewer bits than the number")


FloatTensor = TensorType.constr(base(Float32Type))
PointTensor = TensorType.constr(base(PointType))


@irdl_op_definition
class EncodeOp(IRDLOperation):
    """Floats as fixed-point numbers: rounded half to even, and clamped."""

    name = "fixed.encode"

    input = operand_def(FloatTensor)
    result = result_def(PointTensor)

    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_shapes(self.input.type, self.result.type)


@irdl_op_definition
class DecodeOp(IRDLOperation):
    """Fixed-point numbers as floats."""

    name = "fixed.decode"

    input = operand_def(PointTensor)
    result = result_def(FloatTensor)

    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_shapes(self.input.type, self.result.type)


def check_shapes(given: Attribute, result: Attribute) -> None:
    if mico.shape_of(given) != mico.shape_of(result):
        raise VerifyException(f"the input is {given}, the result {result}")


def point_of(type: Attribute) -> PointType:
    point = mico.element_type(type)
    assert isinstance(point, PointType)
    return point


class LowerEncode(RewritePattern):
    """fixed.encode becomes mico.quantize with the scale that the type says."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: EncodeOp, rewriter: PatternRewriter, /) -> None:
        point = point_of(op.result.type)
        scale = ConstantOp(FloatAttr(point.scale, f32))
        integers = TensorType(mico.IntType(point.bits.value.data), mico.shape_of(op.result.type))
        quantize = mico.QuantizeOp.of(op.input, scale.result, result_types=[integers])
        cast = UnrealizedConversionCastOp.get([quantize.result], [op.result.type])
        rewriter.replace(op, [scale, quantize, cast])


class LowerDecode(RewritePattern):
    """fixed.decode becomes mico.dequantize with that scale."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DecodeOp, rewriter: PatternRewriter, /) -> None:
        point = point_of(op.input.type)
        scale = ConstantOp(FloatAttr(point.scale, f32))
        integers = TensorType(mico.IntType(point.bits.value.data), mico.shape_of(op.input.type))
        cast = UnrealizedConversionCastOp.get([op.input], [integers])
        dequantize = mico.DequantizeOp.of(cast, scale.result, result_types=[op.result.type])
        rewriter.replace(op, [scale, cast, dequantize])


@dataclass(frozen=True)
class LowerFixed(ModulePass):
    """Lower the fixed dialect to mico."""

    name = "lower-fixed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [LowerEncode(), LowerDecode()])
        ReconcileUnrealizedCastsPass().apply(ctx, op)


@register_type(PointType)
def held_as(type: PointType) -> np.dtype[np.int8]:
    return np.dtype(np.int8)


@register(EncodeOp)
def encode(frame: Frame, op: EncodeOp, operands: Sequence[Value]) -> Sequence[Value]:
    point = point_of(op.result.type)
    most = 2 ** (point.bits.value.data - 1)
    steps = np.round(operands[0] / np.float32(point.scale))
    return [np.clip(steps, -most, most - 1).astype(np.int8)]


@register(DecodeOp)
def decode(frame: Frame, op: DecodeOp, operands: Sequence[Value]) -> Sequence[Value]:
    return [operands[0].astype(np.float32) * np.float32(point_of(op.input.type).scale)]


Fixed = Dialect("fixed", [EncodeOp, DecodeOp], [PointType])

UNIVERSE = Universe(
    all_dialects={"fixed": lambda: Fixed}, all_passes={"lower-fixed": lambda: LowerFixed}
)
