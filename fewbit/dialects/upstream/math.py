"""math ops that xDSL lacks."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, TensorType, VectorType, container_of, i1
from xdsl.dialects.math import FloatingPointLikeUnaryMathOperation, Math
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
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

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        flags = attributes.pop("fastmath", FastMathFlagsAttr("none"))
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(unresolved, parser.parse_type())
        return cls(
            operands=[operand],
            result_types=[_bool_like(operand.type)],
            properties={"fastmath": flags},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        plain = self.fastmath == FastMathFlagsAttr("none")
        flags = {} if plain else {"fastmath": self.fastmath}
        printer.print_op_attributes({**flags, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)


def _bool_like(type: Attribute) -> Attribute:
    """Return i1, in a tensor or vector like `type`'s."""
    if isinstance(type, TensorType):
        return TensorType(i1, type.get_shape())
    return VectorType(i1, type.get_shape()) if isinstance(type, VectorType) else i1


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
