"""math ops that xDSL lacks."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, container_of, i1
from xdsl.dialects.math import FloatingPointLikeUnaryMathOperation, Math
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure, SameOperandsAndResultType

from fewbit.dialects.upstream.extend import extend

_FLOAT_LIKE = container_of(AnyFloat)
_BOOL_LIKE = container_of(i1)


@irdl_op_definition
class ErfcOp(FloatingPointLikeUnaryMathOperation):
    """1 - erf(x)."""

    name = "math.erfc"

    traits = traits_def(Pure(), SameOperandsAndResultType())


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """The value, or the bound that it goes beyond; the upper bound wins."""

    name = "math.clampf"

    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)

    value = operand_def(T)
    min = operand_def(T)
    max = operand_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))
    result = result_def(T)

    assembly_format = (
        "$value `to` ` ` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? "
        "attr-dict `:` type($result)"
    )

    traits = traits_def(Pure())


class FloatClassOperation(IRDLOperation):
    """A question about the kind of a float."""

    operand = operand_def(_FLOAT_LIKE)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))
    result = result_def(_BOOL_LIKE)

    traits = traits_def(Pure())


@irdl_op_definition
class IsNaNOp(FloatClassOperation):
    name = "math.isnan"


@irdl_op_definition
class IsInfOp(FloatClassOperation):
    name = "math.isinf"


@irdl_op_definition
class IsFiniteOp(FloatClassOperation):
    name = "math.isfinite"


DIALECT = extend(Math, ErfcOp, ClampFOp, IsNaNOp, IsInfOp, IsFiniteOp)
