"""Ops that move data and compute nothing: flatten, reshape, transpose, concat."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
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
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico import shapes
from fewbit.dialects.mico.constraints import I32, AnyTensor, I64Array, integer
from fewbit.dialects.mico.shapes import DYNAMIC, require, show
from fewbit.dialects.mico.syntax import LayerOp, OperandValues, Properties, int_array, ints
from fewbit.dialects.mico.types import element_type, shape_of


def _check_elements(given: Attribute, result: Attribute) -> None:
    if element_type(given) != element_type(result):
        raise VerifyException(f"changes the element type of {given} to {element_type(result)}")


@irdl_op_definition
class FlattenOp(LayerOp):
    """The dimensions from `start_dim` to `end_dim` as one."""

    name = "mico.flatten"

    input = operand_def(AnyTensor)
    start_dim = prop_def(I32)
    end_dim = prop_def(I32)
    result = result_def(AnyTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"start_dim": integer(1), "end_dim": integer(-1)}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_elements(self.input.type, self.result.type)
        flat = shapes.flatten(
            shape_of(self.input.type), self.start_dim.value.data, self.end_dim.value.data
        )
        require(flat, shape_of(self.result.type), "the result")


@irdl_op_definition
class ReshapeOp(LayerOp):
    """Another shape of the same elements: 0 keeps a dimension, one -1 takes what is left."""

    name = "mico.reshape"

    input = operand_def(AnyTensor)
    shape = prop_def(I64Array)
    result = result_def(AnyTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_elements(self.input.type, self.result.type)
        given, wanted = shape_of(self.input.type), list(ints(self.shape))
        if min(wanted, default=0) < -1 or wanted.count(-1) > 1:
            raise VerifyException(f"shape = {wanted} has at most one -1, and nothing below it")
        for i, extent in enumerate(wanted):
            if extent == 0:
                if i >= len(given):
                    raise VerifyException(f"shape = {wanted} keeps dimension {i} of {show(given)}")
                wanted[i] = given[i]
        require(self._inferred(given, wanted), shape_of(self.result.type), "the result")

    def _inferred(self, given: shapes.Shape, wanted: list[int]) -> shapes.Shape:
        total = shapes.size(given)
        if total == DYNAMIC or DYNAMIC in [
            w for w, s in zip(wanted, ints(self.shape), strict=True) if s != -1
        ]:
            return tuple(wanted)
        known = prod(w for w in wanted if w != -1)
        if -1 not in wanted:
            if known != total:
                raise VerifyException(f"{show(given)} does not fill {show(wanted)}")
            return tuple(wanted)
        if known == 0 or total % known != 0:
            raise VerifyException(f"{show(given)} does not divide into {show(wanted)}")
        return tuple(total // known if w == -1 else w for w in wanted)

    @classmethod
    def complete(
        cls,
        parser: Parser,
        operands: OperandValues,
        properties: Properties,
        results: Sequence[Attribute],
    ) -> None:
        if "shape" not in properties and len(results) == 1:
            properties["shape"] = int_array(*shape_of(results[0]))


@irdl_op_definition
class TransposeOp(LayerOp):
    """Dimension i of the result is dimension permutation[i] of the input."""

    name = "mico.transpose"

    input = operand_def(AnyTensor)
    permutation = prop_def(I64Array)
    result = result_def(AnyTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        _check_elements(self.input.type, self.result.type)
        turned = shapes.transpose(shape_of(self.input.type), ints(self.permutation))
        require(turned, shape_of(self.result.type), "the result")


@irdl_op_definition
class ConcatOp(LayerOp):
    """Tensors behind each other along one dimension."""

    name = "mico.concat"

    inputs = var_operand_def(AnyTensor)
    dim = prop_def(I32)
    result = result_def(AnyTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        if not self.inputs:
            raise VerifyException("joins at least one tensor")
        for value in self.inputs:
            _check_elements(value.type, self.result.type)
        joined = shapes.concat([shape_of(v.type) for v in self.inputs], self.dim.value.data)
        require(joined, shape_of(self.result.type), "the result")
