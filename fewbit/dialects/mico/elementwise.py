"""Elementwise ops, and softmax."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import (
    I32,
    AnyTensor,
    FloatTensor,
    Name,
    check_choice,
    integer,
)
from fewbit.dialects.mico.shapes import axis, broadcast, require
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.mico.types import element_type, element_width, shape_of


def check_same_type(given: SSAValue, result: SSAValue) -> None:
    if given.type != result.type:
        raise VerifyException(f"the result is {result.type}, the input {given.type}")


@irdl_op_definition
class ReluOp(LayerOp):
    """max(x, 0); also of integers, which have the sign of what they stand for."""

    name = "mico.relu"

    input = operand_def(AnyTensor)
    result = result_def(AnyTensor)

    traits = traits_def(Pure())

    def __init__(self, input: SSAValue) -> None:
        super().__init__(operands=[input], result_types=[input.type])

    def verify_(self) -> None:
        check_same_type(self.input, self.result)
        width = element_width(self.input.type)
        if width is not None and width.is_binary:
            raise VerifyException("one bit holds -1 and +1, so it cannot hold max(x, 0)")


@irdl_op_definition
class Relu6Op(LayerOp):
    """min(max(x, 0), 6)."""

    name = "mico.relu6"

    input = operand_def(FloatTensor)
    result = result_def(FloatTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_same_type(self.input, self.result)


@irdl_op_definition
class GeluOp(LayerOp):
    """x · Φ(x), exactly or by the tanh approximation."""

    name = "mico.gelu"

    input = operand_def(FloatTensor)
    approximate = prop_def(Name)
    result = result_def(FloatTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"approximate": StringAttr("none")}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_same_type(self.input, self.result)
        check_choice("approximate", self.approximate, ("none", "tanh"))


@irdl_op_definition
class SiluOp(LayerOp):
    """x · sigmoid(x)."""

    name = "mico.silu"

    input = operand_def(FloatTensor)
    result = result_def(FloatTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_same_type(self.input, self.result)


@irdl_op_definition
class SoftmaxOp(LayerOp):
    """exp(x - max x) / Σ exp(x - max x) along one dimension."""

    name = "mico.softmax"

    input = operand_def(FloatTensor)
    dim = prop_def(I32)
    result = result_def(FloatTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"dim": integer(-1)}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        check_same_type(self.input, self.result)
        axis(self.dim.value.data, len(shape_of(self.input.type)), "dim")


class BinaryOp(LayerOp):
    """Ops on two tensors that broadcast as in numpy."""

    lhs = operand_def(FloatTensor)
    rhs = operand_def(FloatTensor)
    result = result_def(FloatTensor)

    traits = traits_def(Pure(), Commutative())

    def verify_(self) -> None:
        lhs, rhs, result = self.lhs.type, self.rhs.type, self.result.type
        if not element_type(lhs) == element_type(rhs) == element_type(result):
            raise VerifyException(f"element types differ: {lhs}, {rhs}, {result}")
        require(broadcast(shape_of(lhs), shape_of(rhs)), shape_of(result), "the result")


@irdl_op_definition
class AddOp(BinaryOp):
    """x + y."""

    name = "mico.add"


@irdl_op_definition
class MulOp(BinaryOp):
    """x · y."""

    name = "mico.mul"
