"""From floats to few-bit integers and back, and the two as one value.

`weight_quant` and `activation_quant` find their scales; `quantize`, `dequantize` and `requantize`
are given them. `bundle` joins integers and scales into one `!mico.qtensor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, IntegerType, NoneType, StringAttr, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import (
    I32,
    AccumulatorTensor,
    FewBitTensor,
    Flag,
    FloatOrFewBitTensor,
    FloatTensor,
    Int32,
    Name,
    Scale,
    WidthAttr,
    ZeroPoint,
    check_choice,
    check_offset,
    check_width,
    check_zero_point,
    integer,
    read_width,
)
from fewbit.dialects.mico.shapes import DYNAMIC, axis, granularity, require, show, size
from fewbit.dialects.mico.syntax import LayerOp, OperandValues, Properties
from fewbit.dialects.mico.types import (
    QTensorType,
    element_type,
    element_width,
    few_bit_type,
    shape_of,
    tensor,
)
from fewbit.dialects.traits import TreatsFeaturesAlike


def _type_of(value: SSAValue | None) -> Attribute | None:
    return None if value is None else value.type


@irdl_op_definition
class WeightQuantOp(LayerOp):
    """A float weight as integers, their scale and, if asymmetric, their zero point."""

    name = "mico.weight_quant"

    weight = operand_def(FloatTensor)
    bits = prop_def(WidthAttr)
    mode = prop_def(Name)
    granularity = prop_def(Name)
    group = opt_prop_def(I32)
    symmetric = prop_def(Flag)
    values = result_def(FewBitTensor)
    scale = result_def(Scale)
    zero_point = opt_result_def(ZeroPoint)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "mode": StringAttr("max"),
        "symmetric": BoolAttr.from_bool(True),
    }

    def scale_shape(self) -> tuple[int, ...]:
        shape = shape_of(self.weight.type)
        if self.granularity.data == "tensor" or not shape:
            return ()
        if self.granularity.data == "channel":
            return shape[:1]
        group = 0 if self.group is None else self.group.value.data
        k = size(shape[1:])
        if group < 1 or (k != DYNAMIC and k % group != 0):
            raise VerifyException(f"groups of {group} do not divide {k} elements a channel")
        return (shape[0], DYNAMIC if k == DYNAMIC else k // group)

    def output_types(self) -> Sequence[Attribute]:
        check_width("bits", self.bits)
        check_choice("granularity", self.granularity, ("tensor", "channel", "group"))
        values = tensor(few_bit_type(read_width(self.bits)), shape_of(self.weight.type))
        scale = self.scale_shape()
        types: list[Attribute] = [values, tensor(f32, scale)]
        return types if self.symmetric.value.data else [*types, tensor(i32, scale)]

    def verify_(self) -> None:
        super().verify_()
        check_choice("mode", self.mode, ("max", "mean"))
        if self.group is not None and self.granularity.data != "group":
            raise VerifyException(f'granularity "{self.granularity.data}" has no group')
        check_zero_point(_type_of(self.zero_point), read_width(self.bits))
        if self.zero_point is not None and self.mode.data != "max":
            raise VerifyException(f'an asymmetric weight has no mode "{self.mode.data}"')

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        if len(results) < 2:
            properties.setdefault("granularity", StringAttr("channel"))
            return
        properties["symmetric"] = BoolAttr.from_bool(len(results) == 2)
        if "granularity" in properties:
            return
        kind, group = granularity(shape_of(results[0]), shape_of(results[1]))
        properties["granularity"] = StringAttr(kind)
        if group is not None:
            properties["group"] = integer(group)


@irdl_op_definition
class ActivationQuantOp(LayerOp):
    """Activations quantized by scales that are found at run time.

    With one float result: rounded to what the integers can hold, and float again. With two: the
    integers and their scales, one for each row, sample, or the tensor.
    """

    name = "mico.activation_quant"

    input = operand_def(FloatTensor)
    bits = prop_def(WidthAttr)
    mode = prop_def(Name)
    granularity = prop_def(Name)
    result = result_def(FloatOrFewBitTensor)
    scale = opt_result_def(Scale)

    traits = traits_def(TreatsFeaturesAlike())

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "mode": StringAttr("max"),
        "granularity": StringAttr("row"),
    }

    def scale_shape(self) -> tuple[int, ...]:
        check_choice("granularity", self.granularity, ("row", "sample", "tensor"))
        shape = shape_of(self.input.type)
        return {"row": shape[:-1], "sample": shape[:1], "tensor": ()}[self.granularity.data]

    def output_types(self) -> Sequence[Attribute]:
        check_width("bits", self.bits)
        if element_width(self.result.type) is None:
            return [self.input.type]
        values = tensor(few_bit_type(read_width(self.bits)), shape_of(self.input.type))
        return [values, tensor(f32, self.scale_shape())]

    def verify_(self) -> None:
        super().verify_()
        check_choice("mode", self.mode, ("max", "mean"))
        check_choice("granularity", self.granularity, ("row", "sample", "tensor"))


def _check_leading(scale: SSAValue | None, shape: tuple[int, ...], what: str) -> None:
    """Check that a scale covers the tensor, or each index of leading dimensions."""
    if scale is None:
        return
    given = shape_of(scale.type)
    if len(given) >= max(len(shape), 1) and given != ():
        raise VerifyException(f"{what} of shape {show(given)} for a tensor of {show(shape)}")
    require(shape[: len(given)], given, what)


def _scales_whole_rows(op: QuantizeOp) -> bool:
    scales = [op.scale] if op.zero_point is None else [op.scale, op.zero_point]
    return all(len(shape_of(s.type)) < len(shape_of(op.input.type)) for s in scales)


@irdl_op_definition
class QuantizeOp(LayerOp):
    """Floats as integers, with a scale that is known: round(x / scale) + zero point, clamped."""

    name = "mico.quantize"

    CLAUSES: ClassVar[tuple[str, ...]] = ("zero_point",)

    input = operand_def(FloatTensor)
    scale = operand_def(Scale)
    zero_point = opt_operand_def(ZeroPoint)
    result = result_def(FewBitTensor)

    traits = traits_def(TreatsFeaturesAlike(where=_scales_whole_rows))

    def output_type(self) -> Attribute:
        return tensor(element_type(self.result.type), shape_of(self.input.type))

    def verify_(self) -> None:
        super().verify_()
        shape = shape_of(self.input.type)
        check_zero_point(
            _type_of(self.zero_point), element_width(self.result.type), self.scale.type
        )
        _check_leading(self.scale, shape, "a scale")
        _check_leading(self.zero_point, shape, "a zero point")


@irdl_op_definition
class DequantizeOp(LayerOp):
    """Integers as floats: (u - zero point) · scale, or (u - qmin) · scale + offset."""

    name = "mico.dequantize"

    CLAUSES: ClassVar[tuple[str, ...]] = ("zero_point", "offset")

    input = operand_def(FewBitTensor)
    scale = operand_def(Scale)
    zero_point = opt_operand_def(ZeroPoint)
    offset = opt_operand_def(Scale)
    result = result_def(FloatTensor)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def output_type(self) -> Attribute:
        return tensor(element_type(self.result.type), shape_of(self.input.type))

    def verify_(self) -> None:
        super().verify_()
        shape = shape_of(self.input.type)
        check_zero_point(_type_of(self.zero_point), element_width(self.input.type), self.scale.type)
        zero_point, offset = _type_of(self.zero_point), _type_of(self.offset)
        check_offset(offset, self.input.type, self.scale.type, zero_point)
        for value in (self.scale, self.zero_point):
            if value is None:
                continue
            given = shape_of(value.type)
            if given == shape[: len(given)] and len(given) < max(len(shape), 1):
                continue
            granularity(shape, given)


@irdl_op_definition
class RequantizeOp(LayerOp):
    """Accumulators as the next layer's integers: round(acc · multiplier) + zero point, clamped.

    The multiplier is f32, or with `shift` a fixed-point number, multiplier / 2^shift; one for all,
    or one for each entry of the dimension `axis`.
    """

    name = "mico.requantize"

    CLAUSES: ClassVar[tuple[str, ...]] = ("shift", "zero_point")

    input = operand_def(AccumulatorTensor)
    multiplier = operand_def(Scale | Int32)
    shift = opt_operand_def(Int32)
    zero_point = opt_operand_def(ZeroPoint)
    axis = prop_def(I32)
    result = result_def(FewBitTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"axis": integer(1)}
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def output_type(self) -> Attribute:
        return tensor(element_type(self.result.type), shape_of(self.input.type))

    def verify_(self) -> None:
        super().verify_()
        shape = shape_of(self.input.type)
        check_zero_point(_type_of(self.zero_point), element_width(self.result.type))
        element = element_type(self.multiplier.type)
        if isinstance(element, IntegerType) != (self.shift is not None):
            raise VerifyException("an integer multiplier needs a shift, a float one has none")
        extent = shape[axis(self.axis.value.data, len(shape), "axis")] if shape else DYNAMIC
        if self.zero_point is not None and shape_of(self.zero_point.type) != ():
            raise VerifyException("one zero point serves the whole tensor")
        for name in ("multiplier", "shift"):
            value: SSAValue | None = getattr(self, name)
            if value is not None and (given := shape_of(value.type)) != ():
                require((extent,), given, f"the {name}")


@irdl_op_definition
class BundleOp(LayerOp):
    """Integers, their scale and perhaps zero point, as one value."""

    name = "mico.bundle"

    CLAUSES: ClassVar[tuple[str, ...]] = ("zero_point",)

    values = operand_def(FewBitTensor)
    scale = operand_def(Scale)
    zero_point = opt_operand_def(ZeroPoint)
    result = result_def(base(QTensorType))

    def output_type(self) -> Attribute:
        zero_point = _type_of(self.zero_point)
        check_zero_point(zero_point, element_width(self.values.type), self.scale.type)
        return QTensorType(self.values.type, self.scale.type, zero_point)


@irdl_op_definition
class UnbundleOp(LayerOp):
    """The parts of a quantized tensor."""

    name = "mico.unbundle"

    input = operand_def(base(QTensorType))
    values = result_def(FewBitTensor)
    scale = result_def(Scale)
    zero_point = opt_result_def(ZeroPoint)

    def output_types(self) -> Sequence[Attribute]:
        type = self.input.type
        assert isinstance(type, QTensorType)
        parts = (type.values, type.scale, type.zero_point)
        return [part for part in parts if not isinstance(part, NoneType)]
