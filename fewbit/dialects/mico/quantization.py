"""From floats to few-bit integers and back, and the two as one value.

`weight_quant` and `activation_quant` find their scales; `quantize`, `dequantize` and `requantize`
are given them. `bundle` joins integers and scales into one `!mico.qtensor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, NoneType, StringAttr
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
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.constraints import (
    I32,
    AccumulatorTensor,
    FewBitTensor,
    FloatOrFewBitTensor,
    FloatTensor,
    IntTensor,
    Name,
    Scale,
    WidthAttr,
    ZeroPoint,
    check_choice,
    check_width,
    integer,
    read_width,
)
from fewbit.dialects.mico.shapes import DYNAMIC, axis, granularity, require, show
from fewbit.dialects.mico.syntax import LayerOp, OperandValues, Properties
from fewbit.dialects.mico.types import (
    QTensorType,
    TernaryType,
    element_type,
    element_width,
    shape_of,
)
from fewbit.numerics.widths import Width


def _check_result_width(bits: IntegerAttr[IntegerType] | TernaryType, result: Attribute) -> None:
    check_width("bits", bits)
    width = read_width(bits)
    if element_width(result) not in (None, width):
        raise VerifyException(f"bits = {width}, but the result is {result}")


@irdl_op_definition
class WeightQuantOp(LayerOp):
    """A float weight as integers, their scale and, if asymmetric, their zero point."""

    name = "mico.weight_quant"

    weight = operand_def(FloatTensor)
    bits = prop_def(WidthAttr)
    mode = prop_def(Name)
    granularity = prop_def(Name)
    group = opt_prop_def(I32)
    values = result_def(FewBitTensor)
    scale = result_def(Scale)
    zero_point = opt_result_def(ZeroPoint)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"mode": StringAttr("max")}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        shape = shape_of(self.weight.type)
        require(shape, shape_of(self.values.type), "the result")
        _check_result_width(self.bits, self.values.type)
        check_choice("mode", self.mode, ("max", "mean"))
        check_choice("granularity", self.granularity, ("tensor", "channel", "group"))
        kind, group = granularity(shape, shape_of(self.scale.type))
        if kind != self.granularity.data:
            raise VerifyException(
                f'granularity = "{self.granularity.data}", but the scale is {self.scale.type}'
            )
        if (None if self.group is None else self.group.value.data) != group:
            raise VerifyException(f"group does not fit the scale, whose groups have {group}")
        if self.zero_point is not None:
            require(shape_of(self.scale.type), shape_of(self.zero_point.type), "the zero point")

    @classmethod
    def complete(
        cls,
        parser: Parser,
        operands: OperandValues,
        properties: Properties,
        results: Sequence[Attribute],
    ) -> None:
        if "granularity" in properties or len(results) < 2:
            return
        try:
            kind, group = granularity(shape_of(results[0]), shape_of(results[1]))
        except VerifyException as e:
            parser.raise_error(str(e))
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

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "mode": StringAttr("max"),
        "granularity": StringAttr("row"),
    }
    traits = traits_def(Pure())

    def scale_shape(self) -> tuple[int, ...]:
        shape = shape_of(self.input.type)
        return {"row": shape[:-1], "sample": shape[:1], "tensor": ()}[self.granularity.data]

    def verify_(self) -> None:
        require(shape_of(self.input.type), shape_of(self.result.type), "the result")
        _check_result_width(self.bits, self.result.type)
        check_choice("mode", self.mode, ("max", "mean"))
        check_choice("granularity", self.granularity, ("row", "sample", "tensor"))
        integers = element_width(self.result.type) is not None
        if integers != (self.scale is not None):
            raise VerifyException("integers come with their scale, floats without")
        if self.scale is not None:
            require(self.scale_shape(), shape_of(self.scale.type), "the scale")
        if not integers and self.result.type != self.input.type:
            raise VerifyException(f"floats stay {self.input.type}, not {self.result.type}")


def _check_leading(scale: SSAValue | None, shape: tuple[int, ...], what: str) -> None:
    """A scale covers the tensor, or one each of its leading dimensions."""
    if scale is None:
        return
    given = shape_of(scale.type)
    if len(given) >= max(len(shape), 1) and given != ():
        raise VerifyException(f"{what} of shape {show(given)} for a tensor of {show(shape)}")
    require(shape[: len(given)], given, what)


@irdl_op_definition
class QuantizeOp(LayerOp):
    """Floats as integers, with a scale that is known: round(x / scale) + zero point, clamped."""

    name = "mico.quantize"

    CLAUSES: ClassVar[tuple[str, ...]] = ("zero_point",)

    input = operand_def(FloatTensor)
    scale = operand_def(Scale)
    zero_point = opt_operand_def(ZeroPoint)
    result = result_def(FewBitTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        shape = shape_of(self.input.type)
        require(shape, shape_of(self.result.type), "the result")
        _check_leading(self.scale, shape, "a scale")
        _check_leading(self.zero_point, shape, "a zero point")


@irdl_op_definition
class DequantizeOp(LayerOp):
    """Integers as floats: (u - zero point) · scale."""

    name = "mico.dequantize"

    CLAUSES: ClassVar[tuple[str, ...]] = ("zero_point",)

    input = operand_def(FewBitTensor)
    scale = operand_def(Scale)
    zero_point = opt_operand_def(ZeroPoint)
    result = result_def(FloatTensor)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        shape = shape_of(self.input.type)
        require(shape, shape_of(self.result.type), "the result")
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
    multiplier = operand_def(Scale | IntTensor | base(IntegerType))
    shift = opt_operand_def(IntTensor | base(IntegerType))
    zero_point = opt_operand_def(ZeroPoint)
    axis = prop_def(I32)
    result = result_def(FewBitTensor)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"axis": integer(1)}
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        shape = shape_of(self.input.type)
        require(shape, shape_of(self.result.type), "the result")
        element = element_type(self.multiplier.type)
        if isinstance(element, IntegerType) != (self.shift is not None):
            raise VerifyException("an integer multiplier needs a shift, a float one has none")
        extent = shape[axis(self.axis.value.data, len(shape), "axis")] if shape else DYNAMIC
        for name in ("multiplier", "shift", "zero_point"):
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

    traits = traits_def(Pure())

    def verify_(self) -> None:
        zero_point = None if self.zero_point is None else self.zero_point.type
        expected = QTensorType(self.values.type, self.scale.type, zero_point)
        if self.result.type != expected:
            raise VerifyException(f"gives {expected}, not {self.result.type}")


@irdl_op_definition
class UnbundleOp(LayerOp):
    """The parts of a quantized tensor."""

    name = "mico.unbundle"

    input = operand_def(base(QTensorType))
    values = result_def(FewBitTensor)
    scale = result_def(Scale)
    zero_point = opt_result_def(ZeroPoint)

    traits = traits_def(Pure())

    def __init__(self, input: SSAValue) -> None:
        type = input.type
        assert isinstance(type, QTensorType)
        none = isinstance(type.zero_point, NoneType)
        super().__init__(
            operands=[input],
            result_types=[type.values, type.scale, [] if none else [type.zero_point]],
        )

    def verify_(self) -> None:
        type = self.input.type
        assert isinstance(type, QTensorType)
        parts = [
            p for p in (type.values, type.scale, type.zero_point) if not isinstance(p, NoneType)
        ]
        if list(self.result_types) != parts:
            raise VerifyException(f"the parts of {type} are {', '.join(map(str, parts))}")


def result_width(op: QuantizeOp | RequantizeOp) -> Width:
    width = element_width(op.result.type)
    assert width is not None
    return width
