"""Ops that move data and compute nothing: flatten, reshape, transpose, concat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico import shapes
from fewbit.dialects.mico.constraints import I32, AnyTensor, I64Array, integer
from fewbit.dialects.mico.syntax import LayerOp, OperandValues, Properties, int_array, ints
from fewbit.dialects.mico.types import element_type, shape_of, tensor
from fewbit.dialects.traits import MovesData


class LayoutOp(LayerOp):
    """What ops share that move data."""

    traits = traits_def(MovesData())


@irdl_op_definition
class FlattenOp(LayoutOp):
    """The dimensions from `start_dim` to `end_dim` as one."""

    name = "mico.flatten"

    input = operand_def(AnyTensor)
    start_dim = prop_def(I32)
    end_dim = prop_def(I32)
    result = result_def(AnyTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"start_dim": integer(1), "end_dim": integer(-1)}

    def output_type(self) -> Attribute:
        flat = shapes.flatten(
            shape_of(self.input.type), self.start_dim.value.data, self.end_dim.value.data
        )
        return tensor(element_type(self.input.type), flat)


@irdl_op_definition
class ReshapeOp(LayoutOp):
    """Another shape of the same elements: 0 keeps a dimension, one -1 takes what is left."""

    name = "mico.reshape"

    input = operand_def(AnyTensor)
    shape = prop_def(I64Array)
    result = result_def(AnyTensor)

    def output_type(self) -> Attribute:
        shape = shapes.reshape(shape_of(self.input.type), ints(self.shape))
        return tensor(element_type(self.input.type), shape)

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        if "shape" not in properties and len(results) == 1:
            dims = shape_of(results[0])
            properties["shape"] = int_array(*(-1 if d == shapes.DYNAMIC else d for d in dims))


@irdl_op_definition
class TransposeOp(LayoutOp):
    """Dimension i of the result is dimension permutation[i] of the input."""

    name = "mico.transpose"

    input = operand_def(AnyTensor)
    permutation = prop_def(I64Array)
    result = result_def(AnyTensor)

    def output_type(self) -> Attribute:
        transposed = shapes.transpose(shape_of(self.input.type), ints(self.permutation))
        return tensor(element_type(self.input.type), transposed)


@irdl_op_definition
class ConcatOp(LayoutOp):
    """Tensors behind each other along one dimension."""

    name = "mico.concat"

    inputs = var_operand_def(AnyTensor)
    dim = prop_def(I32)
    result = result_def(AnyTensor)

    def output_type(self) -> Attribute:
        if not self.inputs:
            raise VerifyException("joins at least one tensor")
        elements = {element_type(value.type) for value in self.inputs}
        if len(elements) > 1:
            raise VerifyException("joins tensors of different elements")
        joined = shapes.concat([shape_of(v.type) for v in self.inputs], self.dim.value.data)
        return tensor(elements.pop(), joined)
