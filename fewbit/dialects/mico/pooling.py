"""Pooling over N x C x H x W; padding is given for each side, as for convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import AnyTensor, Flag, FloatTensor, I64Array
from fewbit.dialects.mico.shapes import Shape, pool_windows, show
from fewbit.dialects.mico.syntax import (
    LayerOp,
    OperandValues,
    Properties,
    both_sides,
    int_array,
    ints,
    pairs,
)
from fewbit.dialects.mico.types import element_type, shape_of, tensor
from fewbit.dialects.traits import KeepsSign, PicksElements


class PoolOp(LayerOp):
    """What the poolings share."""

    kernel_size = prop_def(I64Array)
    stride = prop_def(I64Array)
    padding = prop_def(I64Array)
    ceil_mode = prop_def(Flag)

    traits = traits_def(KeepsSign())

    def pooled_type(self, type: Attribute, dilation: Sequence[int]) -> Attribute:
        shape = shape_of(type)
        if len(shape) != 4:
            raise VerifyException(f"pools N x C x H x W, not {show(shape)}")
        return tensor(element_type(type), (*shape[:2], *self.windows(shape[2:], dilation)))

    def windows(self, extents: Sequence[int], dilation: Sequence[int]) -> Shape:
        """Return how many windows there are along each of two dimensions."""
        return pool_windows(
            extents,
            ints(self.kernel_size),
            ints(self.stride),
            ints(self.padding),
            dilation,
            ceil=bool(self.ceil_mode.value.data),
        )

    @property
    def padding_pairs(self) -> tuple[tuple[int, int], ...]:
        return pairs(self.padding)

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        properties["padding"] = both_sides(properties["padding"], 2)
        if "kernel_size" in properties:
            properties.setdefault("stride", properties["kernel_size"])


@irdl_op_definition
class MaxPool2dOp(PoolOp):
    """The largest value of each window; padding never wins."""

    name = "mico.maxpool2d"

    input = operand_def(AnyTensor)
    dilation = prop_def(I64Array)
    result = result_def(AnyTensor)

    traits = traits_def(PicksElements())

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "padding": int_array(0, 0),
        "dilation": int_array(1, 1),
        "ceil_mode": BoolAttr.from_bool(False),
    }

    def output_type(self) -> Attribute:
        return self.pooled_type(self.input.type, ints(self.dilation))


@irdl_op_definition
class AvgPool2dOp(PoolOp):
    """The mean of each window; padding counts as zeros, or not at all."""

    name = "mico.avgpool2d"

    input = operand_def(FloatTensor)
    count_include_pad = prop_def(Flag)
    result = result_def(FloatTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "padding": int_array(0, 0),
        "ceil_mode": BoolAttr.from_bool(False),
        "count_include_pad": BoolAttr.from_bool(True),
    }

    def output_type(self) -> Attribute:
        return self.pooled_type(self.input.type, (1, 1))
