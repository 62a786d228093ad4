"""arith ops that xDSL lacks: the remainder of floats and unsigned casts of `index`."""

from __future__ import annotations

from xdsl.dialects.arith import Arith, FloatingPointLikeBinaryOperation, IndexCastOp
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure

from fewbit.dialects.upstream.extend import extend


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """The remainder of a truncated division; it has the sign of the dividend."""

    name = "arith.remf"

    traits = traits_def(Pure())


@irdl_op_definition
class IndexCastUIOp(IndexCastOp):
    """A cast between `index` and integers that extends with zeros."""

    name = "arith.index_castui"


DIALECT = extend(Arith, RemFOp, IndexCastUIOp)
