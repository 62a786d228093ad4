"""Arithmetic on scalars, for the bodies of linalg ops: one call emits one op.

Each function picks the op for floats or for integers by the type of its operands.
"""

from __future__ import annotations

from math import inf
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    AnyFloat,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    f32,
    f64,
    i8,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from fewbit.numerics.widths import Width

INFINITY = inf


def is_float(type: Attribute) -> bool:
    return isinstance(type, AnyFloat)


def integer_type(type: Attribute) -> IntegerType | None:
    return cast(IntegerType, type) if isinstance(type, IntegerType) else None


def constant(value: float, type: Attribute) -> SSAValue:
    if is_float(type):
        return arith.ConstantOp(FloatAttr(float(value), cast(AnyFloat, type))).result
    return arith.ConstantOp(IntegerAttr(int(value), cast(IntegerType, type))).result


def working_type(element: Attribute) -> Attribute:
    """Return the type in which floats of this type are computed: f32, or wider."""
    return f64 if isinstance(element, Float64Type) else f32


def to_float(value: SSAValue, type: Attribute = f32) -> SSAValue:
    """Convert any number to a float of this type."""
    source = value.type
    if source == type:
        return value
    if isinstance(source, IndexType):
        return to_float(arith.IndexCastOp(value, i64).result, type)
    if isinstance(source, IntegerType):
        return arith.SIToFPOp(value, cast(AnyFloat, type)).result
    wider = cast(AnyFloat, source).bitwidth < cast(AnyFloat, type).bitwidth
    if not wider and cast(AnyFloat, source).bitwidth == cast(AnyFloat, type).bitwidth:
        # f16 and bf16 hold different numbers in the same width.
        return to_float(to_float(value, f32), type)
    return (arith.ExtFOp if wider else arith.TruncFOp)(value, cast(AnyFloat, type)).result


def to_integer(value: SSAValue, type: IntegerType) -> SSAValue:
    """Convert an integer, or a float that is whole, to a signed integer of this type."""
    source = value.type
    if source == type:
        return value
    if is_float(source):
        return arith.FPToSIOp(value, type).result
    if isinstance(source, IndexType):
        return arith.IndexCastOp(value, type).result
    wider = cast(IntegerType, source).bitwidth < type.bitwidth
    return (arith.ExtSIOp if wider else arith.TruncIOp)(value, type).result


def add(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return (arith.AddfOp if is_float(lhs.type) else arith.AddiOp)(lhs, rhs).result


def sub(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return (arith.SubfOp if is_float(lhs.type) else arith.SubiOp)(lhs, rhs).result


def mul(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return (arith.MulfOp if is_float(lhs.type) else arith.MuliOp)(lhs, rhs).result


def div(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Return the quotient of floats."""
    return arith.DivfOp(lhs, rhs).result


def larger(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return (arith.MaximumfOp if is_float(lhs.type) else arith.MaxSIOp)(lhs, rhs).result


def larger_of_numbers(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """Return the larger of two floats; of a NaN, or of two zeros, it is left open which.

    That is one instruction where `larger` is five.
    """
    flags = [FastMathFlag.NO_NANS, FastMathFlag.NO_SIGNED_ZEROS]
    return arith.MaximumfOp(lhs, rhs, flags=FastMathFlagsAttr(flags)).result


def smaller(lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    return (arith.MinimumfOp if is_float(lhs.type) else arith.MinSIOp)(lhs, rhs).result


def magnitude(value: SSAValue) -> SSAValue:
    return math.AbsFOp(value).result


def compare(lhs: SSAValue, predicate: str, rhs: SSAValue) -> SSAValue:
    """Compare by "lt", "ge", ...: ordered for floats, signed for integers."""
    if is_float(lhs.type):
        return arith.CmpfOp(lhs, rhs, f"o{predicate}").result
    signed = predicate if predicate in ("eq", "ne") else f"s{predicate}"
    return arith.CmpiOp(lhs, rhs, signed).result


def select(condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
    return arith.SelectOp(condition, yes, no).result


def round_even(value: SSAValue) -> SSAValue:
    """Round half to even."""
    return math.RoundEvenOp(value).result


def clamp(value: SSAValue, width: Width) -> SSAValue:
    """Clamp to the range of a width."""
    low, high = constant(width.qmin, value.type), constant(width.qmax, value.type)
    return smaller(larger(value, low), high)


def sign_of(negative: SSAValue) -> SSAValue:
    """Return -1 where the condition holds, else +1: what one bit holds."""
    return select(negative, constant(-1, i8), constant(1, i8))


def loop_index(loop: int) -> SSAValue:
    """Return the current index of a loop of the surrounding op."""
    return linalg.IndexOp(loop).result
