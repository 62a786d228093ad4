"""torch-mlir's own tensor dialect, as far as its front end produces it.

`scan` is what a cumulative sum becomes, `scatter` an indexed write (a key-value cache, for
instance) and `sort` also a top-k. These ops exist in torch-mlir alone, so they are written in
generic form only.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.upstream.extend import extend


class DestinationOperation(IRDLOperation):
    """An op with inputs, destinations and one result per destination."""

    inputs = var_operand_def(TensorType)
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    region = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def verify_(self) -> None:
        if tuple(self.outputs.types) != tuple(self.res.types):
            raise VerifyException("the results must have the types of the outputs")


@irdl_op_definition
class ScanOp(DestinationOperation):
    """All prefixes of a dimension, combined by the region, and the combination of the whole."""

    name = "tm_tensor.scan"

    dimension = prop_def(IntegerAttr[i64])
    inclusive = prop_def(BoolAttr)

    def verify_(self) -> None:
        super().verify_()
        if len(self.inputs) != 1 or len(self.outputs) != 2:
            raise VerifyException("takes one input and two outputs")


@irdl_op_definition
class ScatterOp(DestinationOperation):
    """Updates written at index tuples, combined with what is there by the region."""

    name = "tm_tensor.scatter"

    dimension_map = prop_def(DenseArrayBase.constr(i64))
    unique_indices = prop_def(BoolAttr)

    def verify_(self) -> None:
        super().verify_()
        if len(self.inputs) != 2 or len(self.outputs) != 1:
            raise VerifyException("takes updates, indices and one output")


@irdl_op_definition
class SortOp(DestinationOperation):
    """The outputs in the order that the region's comparison of their elements gives."""

    name = "tm_tensor.sort"

    dimension = prop_def(IntegerAttr[i64])


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """What a region computed."""

    name = "tm_tensor.yield"

    traits = traits_def(IsTerminator())


DIALECT = extend(Dialect("tm_tensor"), ScanOp, ScatterOp, SortOp, YieldOp)
