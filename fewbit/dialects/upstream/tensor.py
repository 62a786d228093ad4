"""tensor ops that xDSL lacks, and those whose verifiers refuse what MLIR takes."""

from __future__ import annotations

import math
from typing import cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnySignlessIntegerType,
    DenseArrayBase,
    IndexType,
    TensorType,
    UnitAttr,
    UnrankedTensorType,
    i64,
)
from xdsl.dialects.tensor import ExpandShapeOp as RankedExpandShapeOp
from xdsl.dialects.tensor import ReshapeOp as StaticReshapeOp
from xdsl.dialects.tensor import Tensor, YieldOp
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.upstream.extend import extend

_INDICES = TensorType[AnySignlessIntegerType | IndexType]


class ReshapeOp(StaticReshapeOp):
    """xDSL's reshape, whose verifier also knows dynamic sizes."""

    def verify_(self) -> None:
        self.get_irdl_definition().verify(self)
        source = cast(TensorType[Attribute], self.source.type)
        shape = cast(TensorType[Attribute], self.shape.type).get_shape()
        result = self.result.type
        if source.element_type != result.element_type:
            raise VerifyException("the element types of source and result differ")
        if len(shape) != 1 or shape[0] not in (DYNAMIC_INDEX, result.get_num_dims()):
            raise VerifyException("the shape must have one element per dimension of the result")
        if not (source.has_static_shape() and result.has_static_shape()):
            return
        if math.prod(source.get_shape()) != math.prod(result.get_shape()):
            raise VerifyException("source and result differ in the number of elements")


class ExpandShapeOp(RankedExpandShapeOp):
    """xDSL's expand_shape, whose verifier also knows scalars: they have no groups."""

    def verify_(self) -> None:
        source = cast(TensorType[Attribute], self.src.type)
        if source.get_num_dims() > 0 or len(self.reassociation) > 0:
            super().verify_()
        elif any(size != 1 for size in self.result.type.get_shape()):
            raise VerifyException("a scalar expands to sizes of 1 alone")


@irdl_op_definition
class GenerateOp(IRDLOperation):
    """A tensor whose elements a region computes from their indices."""

    name = "tensor.generate"

    dynamic_extents = var_operand_def(IndexType)
    result = result_def(TensorType)
    body = region_def("single_block")

    assembly_format = "$dynamic_extents $body attr-dict `:` type($result)"

    traits = traits_def(RecursiveMemoryEffect(), SingleBlockImplicitTerminator(YieldOp))

    def verify_(self) -> None:
        shape = self.result.type.get_shape()
        if shape.count(DYNAMIC_INDEX) != len(self.dynamic_extents):
            raise VerifyException("there must be one extent per dynamic dimension")
        if len(self.body.block.args) != len(shape):
            raise VerifyException("the body must have one argument per dimension")


@irdl_op_definition
class RankOp(IRDLOperation):
    """The number of dimensions."""

    name = "tensor.rank"

    tensor = operand_def(base(TensorType[Attribute]) | base(UnrankedTensorType[Attribute]))
    result = result_def(IndexType)

    assembly_format = "$tensor attr-dict `:` type($tensor)"

    traits = traits_def(Pure())


@irdl_op_definition
class BitcastOp(IRDLOperation):
    """The same bits as elements of another type of the same width."""

    name = "tensor.bitcast"

    source = operand_def(TensorType)
    dest = result_def(TensorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    traits = traits_def(Pure())


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Slices of the source at the coordinates in the last dimension of `indices`."""

    name = "tensor.gather"

    source = operand_def(TensorType)
    indices = operand_def(_INDICES)
    gather_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    assembly_format = (
        "$source `[` $indices `]` `gather_dims` `(` $gather_dims `)` (`unique` $unique^)? "
        "attr-dict `:` functional-type(operands, results)"
    )

    traits = traits_def(Pure())


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """`dest` with slices replaced at the coordinates in the last dimension of `indices`."""

    name = "tensor.scatter"

    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    indices = operand_def(_INDICES)
    scatter_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    assembly_format = (
        "$source `into` $dest `[` $indices `]` `scatter_dims` `(` $scatter_dims `)` "
        "(`unique` $unique^)? attr-dict `:` functional-type(operands, results)"
    )

    traits = traits_def(Pure())


DIALECT = extend(
    Tensor, ExpandShapeOp, ReshapeOp, GenerateOp, RankOp, BitcastOp, GatherOp, ScatterOp
)
