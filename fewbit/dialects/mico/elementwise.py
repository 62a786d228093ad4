"""Elementwise ops, and softmax."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Commutative
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import (
    I32,
    AnyTensor,
    FloatTensor,
    Name,
    check_choice,
    integer,
)
from fewbit.dialects.mico.shapes import axis, broadcast
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.mico.types import element_type, element_width, shape_of, tensor
from fewbit.dialects.traits import Elementwise, NeverNegative, TreatsFeaturesAlike
from fewbit.numerics.approximations.activations import Activation


class UnaryOp(LayerOp):
    """Functions of each element."""

    input = operand_def(FloatTensor)
    result = result_def(FloatTensor)

    traits = traits_def(Elementwise(), TreatsFeaturesAlike())

    def output_type(self) -> Attribute:
        return self.input.type


@irdl_op_definition
class ReluOp(UnaryOp):
    """max(x, 0); also of integers, which have the sign of what they stand for."""

    name = "mico.relu"

    traits = traits_def(NeverNegative())

    input = operand_def(AnyTensor)
    result = result_def(AnyTensor)

    def output_type(self) -> Attribute:
        width = element_width(self.input.type)
        if width is not None and width.is_binary:
            raise VerifyException("one bit holds -1 and +1, so it cannot hold max(x, 0)")
        return self.input.type


@irdl_op_definition
class Relu6Op(UnaryOp):
    """min(max(x, 0), 6)."""

    name = "mico.relu6"

    traits = traits_def(NeverNegative())


class ActivationOp(UnaryOp):
    """Activation functions that kernels apply too, by the formulas of `numerics/approximations`."""

    @property
    def activation(self) -> Activation:
        """The name of the function."""
        raise NotImplementedError


@irdl_op_definition
class GeluOp(ActivationOp):
    """x · Φ(x), exactly or by the tanh approximation."""

    name = "mico.gelu"

    approximate = prop_def(Name)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"approximate": StringAttr("none")}

    @property
    def activation(self) -> Activation:
        return "gelu_tanh" if self.approximate.data == "tanh" else "gelu"

    def verify_(self) -> None:
        super().verify_()
        check_choice("approximate", self.approximate, ("none", "tanh"))


@irdl_op_definition
class SiluOp(ActivationOp):
    """x · sigmoid(x)."""

    name = "mico.silu"

    @property
    def activation(self) -> Activation:
        return "silu"


@irdl_op_definition
class SoftmaxOp(LayerOp):
    """exp(x - max x) / Σ exp(x - max x) along one dimension."""

    name = "mico.softmax"

    input = operand_def(FloatTensor)
    dim = prop_def(I32)
    result = result_def(FloatTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"dim": integer(-1)}

    def output_type(self) -> Attribute:
        return self.input.type

    def verify_(self) -> None:
        super().verify_()
        axis(self.dim.value.data, len(shape_of(self.input.type)), "dim")


class BinaryOp(LayerOp):
    """Ops on two tensors that broadcast as in numpy."""

    lhs = operand_def(FloatTensor)
    rhs = operand_def(FloatTensor)
    result = result_def(FloatTensor)

    traits = traits_def(Commutative(), Elementwise())

    def output_type(self) -> Attribute:
        lhs, rhs = self.lhs.type, self.rhs.type
        if element_type(lhs) != element_type(rhs):
            raise VerifyException(f"element types differ: {lhs} and {rhs}")
        return tensor(element_type(lhs), broadcast(shape_of(lhs), shape_of(rhs)))


@irdl_op_definition
class AddOp(BinaryOp):
    """x + y."""

    name = "mico.add"


@irdl_op_definition
class MulOp(BinaryOp):
    """x · y."""

    name = "mico.mul"
