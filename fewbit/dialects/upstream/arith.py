"""arith ops that xDSL lacks: the remainder of floats and unsigned casts of `index`."""

from __future__ import annotations

from xdsl.dialects.arith import Arith, FloatingPointLikeBinaryOperation
from xdsl.dialects.builtin import AnySignlessIntegerType, IndexType, container_of
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

from fewbit.dialects.upstream.extend import extend

_INTEGER_LIKE = container_of(AnySignlessIntegerType | IndexType)


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """The remainder of a truncated division; it has the sign of the dividend."""

    name = "arith.remf"

    traits = traits_def(Pure())


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """A cast between `index` and integers that extends with zeros."""

    name = "arith.index_castui"

    input = operand_def(_INTEGER_LIKE)
    result = result_def(_INTEGER_LIKE)

    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    traits = traits_def(Pure())


DIALECT = extend(Arith, RemFOp, IndexCastUIOp)
