"""Normalizations. Batch norm is the inference form: its statistics are operands."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import F64, I32, FloatTensor, integer, number
from fewbit.dialects.mico.shapes import require
from fewbit.dialects.mico.syntax import LayerOp
from fewbit.dialects.mico.types import shape_of


class NormalizationOp(LayerOp):
    """What the normalizations share."""

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"eps": number(1e-5)}

    input = operand_def(FloatTensor)
    eps = prop_def(F64)
    result = result_def(FloatTensor)

    def output_type(self) -> Attribute:
        return self.input.type

    def verify_(self) -> None:
        super().verify_()
        if not 0 <= self.eps.value.data < inf:
            raise VerifyException("eps is a number of at least 0")


@irdl_op_definition
class BatchNormOp(NormalizationOp):
    """(x - mean) / sqrt(variance + eps) · weight + bias, for each channel (dimension 1)."""

    name = "mico.batch_norm"

    input = operand_def(FloatTensor)
    weight = operand_def(FloatTensor)
    bias = operand_def(FloatTensor)
    mean = operand_def(FloatTensor)
    variance = operand_def(FloatTensor)

    def verify_(self) -> None:
        super().verify_()
        shape = shape_of(self.input.type)
        if len(shape) < 2:
            raise VerifyException("the input has its channels in dimension 1")
        for name in ("weight", "bias", "mean", "variance"):
            value: SSAValue = getattr(self, name)
            require(shape[1:2], shape_of(value.type), f"the {name}")


class TrailingNormOp(NormalizationOp):
    """Normalizations over the last `dims` dimensions."""

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"dims": integer(1), "eps": number(1e-5)}

    dims = prop_def(I32)

    def verify_(self) -> None:
        super().verify_()
        shape = shape_of(self.input.type)
        dims = self.dims.value.data
        if not 1 <= dims <= len(shape):
            raise VerifyException(f"dims = {dims} of a tensor of rank {len(shape)}")
        for name, value in self.parameters():
            if value is not None:
                require(shape[-dims:], shape_of(value.type), f"the {name}")

    def parameters(self) -> list[tuple[str, SSAValue | None]]:
        raise NotImplementedError


@irdl_op_definition
class LayerNormOp(TrailingNormOp):
    """(x - mean x) / sqrt(variance x + eps) · weight + bias."""

    name = "mico.layer_norm"

    input = operand_def(FloatTensor)
    weight = operand_def(FloatTensor)
    bias = opt_operand_def(FloatTensor)

    def parameters(self) -> list[tuple[str, SSAValue | None]]:
        return [("weight", self.weight), ("bias", self.bias)]


@irdl_op_definition
class RmsNormOp(TrailingNormOp):
    """x / sqrt(mean x² + eps) · weight."""

    name = "mico.rms_norm"

    input = operand_def(FloatTensor)
    weight = opt_operand_def(FloatTensor)

    def parameters(self) -> list[tuple[str, SSAValue | None]]:
        return [("weight", self.weight)]
