"""Quantizable layers: each stays one op from the front end to the target.

A layer is float as it is imported, and becomes few-bit by its weight's element type and by
`act_bits`; the four combinations are all valid. Quantized weights come with their scales
(`weight_scale`, whose shape is the granularity) and perhaps zero points. Activations are quantized
inside the op, at run time or with a given `act_scale`; or they arrive as integers, with that scale.
A layer of integers whose result is i32 gives its bare accumulators, for an integer-only flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.arith import ConstantOp as ArithConstantOp
from xdsl.dialects.builtin import (
    FloatAttr,
    f32,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico import shapes
from fewbit.dialects.mico.constants import GetConstantOp
from fewbit.dialects.mico.constraints import (
    I32,
    FloatOrAccumulatorTensor,
    FloatOrFewBitTensor,
    FloatTensor,
    I64Array,
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
from fewbit.dialects.mico.quantization import UnbundleOp, WeightQuantOp
from fewbit.dialects.mico.shapes import DYNAMIC, granularity, require
from fewbit.dialects.mico.syntax import (
    LayerOp,
    OperandValues,
    Properties,
    both_sides,
    int_array,
    ints,
    read_constant,
)
from fewbit.dialects.mico.types import (
    QTensorType,
    element_width,
    is_float_tensor,
    shape_of,
)
from fewbit.errors import Error
from fewbit.ir.parse import SourceParser
from fewbit.numerics.integer import check_accumulator
from fewbit.numerics.widths import Width


class QuantizedLayerOp(LayerOp):
    """What bitlinear and the convolutions share."""

    CLAUSES: ClassVar[tuple[str, ...]] = (
        "weight_scale",
        "weight_zero_point",
        "act_scale",
        "act_zero_point",
    )

    input = operand_def(FloatOrFewBitTensor)
    weight = operand_def(FloatOrFewBitTensor)
    bias = opt_operand_def(FloatOrAccumulatorTensor)
    weight_scale = opt_operand_def(Scale)
    weight_zero_point = opt_operand_def(ZeroPoint)
    act_scale = opt_operand_def(Scale)
    act_zero_point = opt_operand_def(ZeroPoint)
    weight_bits = opt_prop_def(I32)
    act_bits = opt_prop_def(WidthAttr)
    act_mode = opt_prop_def(Name)
    result = result_def(FloatOrAccumulatorTensor)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @property
    def weight_width(self) -> Width | None:
        """None for a float weight."""
        return element_width(self.weight.type)

    @property
    def act_width(self) -> Width | None:
        """None where activations stay float."""
        if self.act_bits is not None:
            return read_width(self.act_bits)
        return element_width(self.input.type)

    @property
    def gives_accumulators(self) -> bool:
        return not is_float_tensor(self.result.type)

    @property
    def granularity(self) -> tuple[str, int | None]:
        """What one weight scale covers, and the group's size if it is a group."""
        scale = () if self.weight_scale is None else shape_of(self.weight_scale.type)
        return granularity(shape_of(self.weight.type), scale)

    def output_shape(self) -> shapes.Shape:
        raise NotImplementedError

    def rows_shape(self) -> shapes.Shape:
        """The shape of dynamic activation scales."""
        raise NotImplementedError

    def verify_(self) -> None:
        require(self.output_shape(), shape_of(self.result.type), "the result")
        channels = shape_of(self.weight.type)[0]
        if self.bias is not None:
            require((channels,), shape_of(self.bias.type), "the bias")
        self._verify_weight()
        self._verify_activation()
        if self.gives_accumulators:
            self._verify_accumulators()
        elif self.bias is not None and not is_float_tensor(self.bias.type):
            raise VerifyException("a float result has a float bias")
        self._verify_accumulator_range()

    def _verify_weight(self) -> None:
        width = self.weight_width
        if width is None:
            for name in ("weight_bits", "weight_scale", "weight_zero_point"):
                if getattr(self, name) is not None:
                    raise VerifyException(f"{name} given, but the weight is float")
            return
        bits = None if self.weight_bits is None else self.weight_bits.value.data
        if bits is not None and bits != width.bits:
            raise VerifyException(f"weight_bits = {bits}, but the weight is {self.weight.type}")
        if self.weight_scale is None and not self.gives_accumulators:
            raise VerifyException("a quantized weight needs its weight_scale")
        for value in (self.weight_scale, self.weight_zero_point):
            if value is not None:
                granularity(shape_of(self.weight.type), shape_of(value.type))

    def _verify_activation(self) -> None:
        check_width("act_bits", self.act_bits)
        check_choice("act_mode", self.act_mode, ("max", "mean"))
        arriving = element_width(self.input.type)
        if arriving is not None:
            if self.act_width != arriving:
                raise VerifyException(f"act_bits differ from the input, {self.input.type}")
            if self.act_scale is None and not self.gives_accumulators:
                raise VerifyException("integer activations need their act_scale")
        if self.act_width is None and (self.act_scale or self.act_zero_point):
            raise VerifyException("act_scale given, but activations stay float (no act_bits)")
        if self.act_zero_point is not None and self.act_scale is None and arriving is None:
            raise VerifyException("act_zero_point needs an act_scale")
        for value in (self.act_scale, self.act_zero_point):
            if value is not None and (shape := shape_of(value.type)) != ():
                require(self.rows_shape(), shape, "an activation scale")

    def _verify_accumulators(self) -> None:
        if self.weight_width is None or element_width(self.input.type) is None:
            raise VerifyException("accumulators (an i32 result) come of integers times integers")
        if self.weight_scale is not None or self.act_scale is not None:
            raise VerifyException("accumulators (an i32 result) are not scaled")
        if self.bias is not None and is_float_tensor(self.bias.type):
            raise VerifyException("accumulators (an i32 result) have an i32 bias")

    def _verify_accumulator_range(self) -> None:
        if self.weight_width is None or self.act_width is None:
            return
        weight = shape_of(self.weight.type)
        k = shapes.size(weight[1:])
        if k == DYNAMIC:
            return
        _, group = self.granularity
        asymmetric = self.weight_zero_point is not None or self.act_zero_point is not None
        try:
            check_accumulator(group or k, self.act_width, self.weight_width, asymmetric=asymmetric)
        except Error as e:
            raise VerifyException(e.what) from None

    @classmethod
    def complete(
        cls,
        parser: Parser,
        operands: OperandValues,
        properties: Properties,
        results: Sequence[Attribute],
    ) -> None:
        """Weights in older spellings carry their scale elsewhere, or nowhere (then it is 1)."""
        weight = operands["weight"][0]
        if isinstance(weight.type, QTensorType) and isinstance(parser, SourceParser):
            parts = UnbundleOp(weight)
            parser.emit_before(parts)
            operands["weight"] = [parts.values]
            operands["weight_scale"] = [parts.scale]
            operands["weight_zero_point"] = [] if parts.zero_point is None else [parts.zero_point]
            weight = parts.values
        width = element_width(weight.type)
        if width is None:
            return
        properties.setdefault("weight_bits", integer(width.bits))
        if operands.get("weight_scale") or not isinstance(parser, SourceParser):
            return
        if element_width(operands["input"][0].type) is not None and not operands.get("act_scale"):
            return
        _find_scale(parser, weight, operands)


def _find_scale(parser: SourceParser, weight: SSAValue, operands: OperandValues) -> None:
    owner = weight.owner
    if isinstance(owner, WeightQuantOp):
        operands["weight_scale"] = [owner.scale]
        if owner.zero_point is not None:
            operands["weight_zero_point"] = [owner.zero_point]
        return
    if isinstance(owner, UnbundleOp):
        operands["weight_scale"] = [owner.scale]
        return
    if isinstance(owner, GetConstantOp):
        name = owner.symbol.root_reference.data
        for field, known in (
            ("weight_scale", parser.constant_scales),
            ("weight_zero_point", parser.constant_zero_points),
        ):
            if name in known:
                operands[field] = [read_constant(parser, known[name])]
        return
    unit = ArithConstantOp(FloatAttr(1.0, f32))
    unit.result.name_hint = "unit_scale"
    parser.emit_before(unit)
    operands["weight_scale"] = [unit.result]


@irdl_op_definition
class BitLinearOp(QuantizedLayerOp):
    """y[..., n] = x[..., k] · w[n, k] + b[n]; activations are scaled by the row."""

    name = "mico.bitlinear"

    def output_shape(self) -> shapes.Shape:
        weight, x = shape_of(self.weight.type), shape_of(self.input.type)
        if len(weight) != 2:
            raise VerifyException(f"a linear weight is N x K, not {shapes.show(weight)}")
        if not x:
            raise VerifyException("the input needs at least one dimension")
        if not shapes.compatible(x[-1:], weight[1:]):
            raise VerifyException(
                f"the input has {shapes.show(x[-1:])} features, the weight takes "
                f"{shapes.show(weight[1:])}"
            )
        return (*x[:-1], weight[0])

    def rows_shape(self) -> shapes.Shape:
        return shape_of(self.input.type)[:-1]


class ConvolutionOp(QuantizedLayerOp):
    """What the convolutions share; activations are scaled by the sample.

    `padding` lists, for each spatial dimension, what is added before and after it; one number a
    dimension is accepted in text and means both sides.
    """

    RANK: ClassVar[int]

    stride = prop_def(I64Array)
    padding = prop_def(I64Array)
    dilation = prop_def(I64Array)
    groups = prop_def(I32)

    def output_shape(self) -> shapes.Shape:
        weight, x = shape_of(self.weight.type), shape_of(self.input.type)
        rank = self.RANK
        if len(weight) != rank + 2 or len(x) != rank + 2:
            raise VerifyException(
                f"{self.name} takes an input and a weight of rank {rank + 2}, not "
                f"{shapes.show(x)} and {shapes.show(weight)}"
            )
        groups = self.groups.value.data
        if groups < 1 or weight[0] % groups != 0:
            raise VerifyException(f"{groups} groups do not divide {weight[0]} output channels")
        if x[1] != DYNAMIC and x[1] != weight[1] * groups:
            raise VerifyException(
                f"the input has {x[1]} channels, the weight takes {groups} groups of {weight[1]}"
            )
        spatial = shapes.windows(
            x[2:], weight[2:], ints(self.stride), ints(self.padding), ints(self.dilation)
        )
        return (x[0], weight[0], *spatial)

    def rows_shape(self) -> shapes.Shape:
        return shape_of(self.input.type)[:1]

    @property
    def padding_pairs(self) -> tuple[tuple[int, int], ...]:
        flat = ints(self.padding)
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    @classmethod
    def complete(
        cls,
        parser: Parser,
        operands: OperandValues,
        properties: Properties,
        results: Sequence[Attribute],
    ) -> None:
        super().complete(parser, operands, properties, results)
        properties["padding"] = both_sides(properties["padding"], cls.RANK)


def _convolution_defaults(rank: int) -> dict[str, Attribute]:
    return {
        "stride": int_array(*[1] * rank),
        "padding": int_array(*[0] * rank),
        "dilation": int_array(*[1] * rank),
        "groups": integer(1),
    }


@irdl_op_definition
class BitConv2dOp(ConvolutionOp):
    """Two-dimensional convolution, N x C x H x W by O x C/groups x kh x kw."""

    name = "mico.bitconv2d"

    RANK: ClassVar[int] = 2
    DEFAULTS: ClassVar[dict[str, Attribute]] = _convolution_defaults(2)


@irdl_op_definition
class BitConv1dOp(ConvolutionOp):
    """One-dimensional convolution, N x C x L by O x C/groups x k."""

    name = "mico.bitconv1d"

    RANK: ClassVar[int] = 1
    DEFAULTS: ClassVar[dict[str, Attribute]] = _convolution_defaults(1)


@irdl_op_definition
class EmbeddingOp(LayerOp):
    """Rows of a table, one for each index; a few-bit table is scaled as a weight is."""

    name = "mico.embedding"

    CLAUSES: ClassVar[tuple[str, ...]] = ("weight_scale", "weight_zero_point")

    indices = operand_def(IntTensor)
    weight = operand_def(FloatOrFewBitTensor)
    weight_scale = opt_operand_def(Scale)
    weight_zero_point = opt_operand_def(ZeroPoint)
    result = result_def(FloatTensor)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        table = shape_of(self.weight.type)
        if len(table) != 2:
            raise VerifyException(f"a table is rows x features, not {shapes.show(table)}")
        require((*shape_of(self.indices.type), table[1]), shape_of(self.result.type), "the result")
        if element_width(self.weight.type) is None:
            if self.weight_scale is not None or self.weight_zero_point is not None:
                raise VerifyException("weight_scale given, but the table is float")
            return
        if self.weight_scale is None:
            raise VerifyException("a quantized table needs its weight_scale")
        for value in (self.weight_scale, self.weight_zero_point):
            if value is not None:
                granularity(table, shape_of(value.type))

    @classmethod
    def complete(
        cls,
        parser: Parser,
        operands: OperandValues,
        properties: Properties,
        results: Sequence[Attribute],
    ) -> None:
        weight = operands["weight"][0]
        if element_width(weight.type) is None or operands.get("weight_scale"):
            return
        if isinstance(parser, SourceParser):
            _find_scale(parser, weight, operands)
