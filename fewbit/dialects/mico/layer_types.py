"""The types of one quantized layer, and the rules among them.

Reading an operand of an op with optional operands decodes the op's segment sizes each time, so a
verifier that asks for them one by one is slow. This reads them once; the rules are then plain
functions of types.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import check_offset, check_zero_point
from fewbit.dialects.mico.shapes import DYNAMIC, Shape, granularity, require, size
from fewbit.dialects.mico.types import element_type, element_width, is_float_tensor, shape_of
from fewbit.numerics.integer import check_accumulator
from fewbit.numerics.widths import Width


@dataclass(frozen=True, slots=True)
class LayerTypes:
    """Types of the operands (None where absent), of the result, and the stated widths."""

    input: Attribute
    weight: Attribute
    bias: Attribute | None
    weight_scale: Attribute | None
    weight_zero_point: Attribute | None
    weight_offset: Attribute | None
    act_scale: Attribute | None
    act_zero_point: Attribute | None
    result: Attribute
    weight_bits: int | None
    act_width: Width | None

    def verify(self, rows: Shape) -> None:
        """Check everything but the result's shape; `rows` is the shape of activation scales."""
        if self.bias is not None:
            require(shape_of(self.weight)[:1], shape_of(self.bias), "the bias")
        for type in (self.input, self.weight, self.bias):
            if isinstance(element_type(type or self.input), Float64Type):
                raise VerifyException("layers compute in float32, so they take no f64")
        self._verify_weight()
        self._verify_activation(rows)
        if not is_float_tensor(self.result):
            self._verify_accumulators()
        elif self.bias is not None and not is_float_tensor(self.bias):
            raise VerifyException("a float result has a float bias")
        self._verify_accumulator_range()

    @property
    def is_scaled(self) -> bool:
        return is_float_tensor(self.result)

    def _verify_weight(self) -> None:
        width = element_width(self.weight)
        if width is None:
            parts = (self.weight_scale, self.weight_zero_point, self.weight_offset)
            if self.weight_bits is not None or any(parts):
                raise VerifyException("a float weight has no weight_bits, scale or zero point")
            return
        if self.weight_bits is None:
            raise VerifyException(f"a few-bit weight needs weight_bits = {width.bits} : i32")
        if self.weight_bits != width.bits:
            raise VerifyException(
                f"weight_bits = {self.weight_bits}, but the weight is {self.weight}"
            )
        if self.weight_scale is None and self.is_scaled:
            raise VerifyException("a quantized weight needs its weight_scale")
        check_zero_point(self.weight_zero_point, width, self.weight_scale)
        check_offset(self.weight_offset, self.weight, self.weight_scale, self.weight_zero_point)
        for type in (self.weight_scale, self.weight_zero_point):
            if type is not None:
                granularity(shape_of(self.weight), shape_of(type))

    def _verify_activation(self, rows: Shape) -> None:
        arriving = element_width(self.input)
        if arriving is not None:
            if self.act_width != arriving:
                raise VerifyException(f"act_bits differ from the input, {self.input}")
            if self.act_scale is None and self.is_scaled:
                raise VerifyException("integer activations need their act_scale")
        if self.act_width is None and (self.act_scale or self.act_zero_point):
            raise VerifyException("act_scale given, but activations stay float (no act_bits)")
        if self.act_zero_point is not None and self.act_scale is None and arriving is None:
            raise VerifyException("act_zero_point needs an act_scale")
        check_zero_point(self.act_zero_point, self.act_width, self.act_scale)
        for type in (self.act_scale, self.act_zero_point):
            if type is not None and (shape := shape_of(type)) != ():
                require((*rows, *self._row_groups(shape, rows)), shape, "an activation scale")

    def _row_groups(self, scale: Shape, rows: Shape) -> Shape:
        """Return the groups that a row of integers has scales for, as many as the weight has."""
        weight = () if self.weight_scale is None else shape_of(self.weight_scale)
        is_linear = len(rows) + 1 == len(shape_of(self.input))
        arrives = element_width(self.input) is not None
        if len(scale) <= len(rows) or len(weight) != 2 or not is_linear or not arrives:
            return ()
        return weight[1:]

    def _verify_accumulators(self) -> None:
        if element_width(self.weight) is None or element_width(self.input) is None:
            raise VerifyException("accumulators (an i32 result) come of integers times integers")
        if self.weight_scale is not None or self.act_scale is not None:
            raise VerifyException("accumulators (an i32 result) are not scaled")
        if self.bias is not None and is_float_tensor(self.bias):
            raise VerifyException("accumulators (an i32 result) have an i32 bias")

    def _verify_accumulator_range(self) -> None:
        weight_width = element_width(self.weight)
        k = size(shape_of(self.weight)[1:])
        if weight_width is None or self.act_width is None or k == DYNAMIC:
            return
        scale = () if self.weight_scale is None else shape_of(self.weight_scale)
        _, group = granularity(shape_of(self.weight), scale)
        zero_points = (self.weight_zero_point, self.weight_offset, self.act_zero_point)
        asymmetric = any(part is not None for part in zero_points)
        check_accumulator(group or k, self.act_width, weight_width, asymmetric=asymmetric)
