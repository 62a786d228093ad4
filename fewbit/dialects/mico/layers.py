"""Quantizable layers: each stays one op from the front end to the target.

A layer is float as it is imported, and becomes few-bit by its weight's element type and by
`act_bits`; the four combinations are all valid. Quantized weights come with their scales
(`weight_scale`, whose shape is the granularity) and perhaps zero points or offsets. Activations are
quantized inside the op, at run time or with a given `act_scale`; or they arrive as integers, with
that scale. Those of a linear layer may have scales for the groups of its weight (`act_group`). A
layer of integers whose result is i32 gives its bare accumulators, for an integer-only
flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.arith import ConstantOp as ArithConstantOp
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerType, f32, i32
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico import shapes
from fewbit.dialects.mico.constants import GetConstantOp
from fewbit.dialects.mico.constraints import (
    I32,
    FloatOrAccumulatorTensor,
    FloatOrFewBitTensor,
    FloatTensor,
    I64Array,
    IndexTensor,
    Integer,
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
from fewbit.dialects.mico.layer_types import LayerTypes
from fewbit.dialects.mico.quantization import UnbundleOp, WeightQuantOp
from fewbit.dialects.mico.shapes import granularity
from fewbit.dialects.mico.syntax import (
    SEGMENTS,
    LayerOp,
    OperandValues,
    Properties,
    both_sides,
    int_array,
    ints,
    pairs,
    read_constant,
)
from fewbit.dialects.mico.types import (
    QTensorType,
    element_type,
    element_width,
    is_float_tensor,
    shape_of,
    tensor,
)
from fewbit.ir.parse import SourceParser
from fewbit.numerics.widths import Width


class QuantizedLayerOp(LayerOp):
    """What bitlinear and the convolutions share."""

    CLAUSES: ClassVar[tuple[str, ...]] = (
        "weight_scale",
        "weight_zero_point",
        "weight_offset",
        "act_scale",
        "act_zero_point",
    )

    input = operand_def(FloatOrFewBitTensor)
    weight = operand_def(FloatOrFewBitTensor)
    bias = opt_operand_def(FloatOrAccumulatorTensor)
    weight_scale = opt_operand_def(Scale)
    weight_zero_point = opt_operand_def(ZeroPoint)
    weight_offset = opt_operand_def(Scale)
    act_scale = opt_operand_def(Scale)
    act_zero_point = opt_operand_def(ZeroPoint)
    weight_bits = opt_prop_def(I32)
    act_bits = opt_prop_def(WidthAttr)
    act_mode = opt_prop_def(Name)
    result = result_def(FloatOrAccumulatorTensor)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

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
        """Whether the result is bare i32 accumulators."""
        return not is_float_tensor(self.result.type)

    @property
    def granularity(self) -> tuple[str, int | None]:
        """What one weight scale covers, and the group's size if it is a group."""
        scale = () if self.weight_scale is None else shape_of(self.weight_scale.type)
        return granularity(shape_of(self.weight.type), scale)

    def types(self) -> LayerTypes:
        operands = iter(self.operands)
        sizes = cast(DenseArrayBase[IntegerType], self.properties[SEGMENTS]).get_values()
        present = [next(operands).type if size else None for size in sizes]
        bits = self.properties.get("weight_bits")
        return LayerTypes(
            self.operands[0].type,
            self.operands[1].type,
            *present[2:],
            result=self.results[0].type,
            weight_bits=cast(Integer, bits).value.data if bits else None,
            act_width=self.act_width,
        )

    def output_shape(self, input: shapes.Shape, weight: shapes.Shape) -> shapes.Shape:
        raise NotImplementedError

    def rows_shape(self, input: shapes.Shape) -> shapes.Shape:
        """Return the shape of dynamic activation scales."""
        raise NotImplementedError

    def output_type(self) -> Attribute:
        input, weight = self.operands[0].type, self.operands[1].type
        element = element_type(input)
        if element_type(self.results[0].type) == i32:
            element = i32
        elif element_width(input) is not None:
            element = f32
        return tensor(element, self.output_shape(shape_of(input), shape_of(weight)))

    def verify_(self) -> None:
        check_width("act_bits", self.act_bits)
        check_choice("act_mode", self.act_mode, ("max", "mean"))
        super().verify_()
        self.types().verify(self.rows_shape(shape_of(self.operands[0].type)))

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        width = element_width(operands["weight"][0].type)
        if width is not None:
            properties.setdefault("weight_bits", integer(width.bits))

    @classmethod
    def fill_operands(cls, parser: SourceParser, operands: OperandValues) -> None:
        """Add the scale that weights in older spellings carry elsewhere, or nowhere (then 1)."""
        if isinstance(operands["weight"][0].type, QTensorType):
            _unbundle_weight(parser, operands)
        integers = element_width(operands["input"][0].type) is not None
        if integers and not operands.get("act_scale"):
            return
        _find_scale(parser, operands)


def _unbundle_weight(parser: SourceParser, operands: OperandValues) -> None:
    parts = UnbundleOp.of(operands["weight"][0])
    parser.emit_before(parts)
    operands["weight"] = [parts.values]
    operands["weight_scale"] = [parts.scale]
    operands["weight_zero_point"] = [] if parts.zero_point is None else [parts.zero_point]


def _find_scale(parser: SourceParser, operands: OperandValues) -> None:
    weight = operands["weight"][0]
    if element_width(weight.type) is None:
        return
    if operands.get("weight_scale"):
        parser.note_scale(given=True, offset=parser.pos)
        return
    owner = None if isinstance(weight, ForwardDeclaredValue) else weight.owner
    if isinstance(owner, WeightQuantOp | UnbundleOp):
        operands["weight_scale"] = [owner.scale]
        if owner.zero_point is not None:
            operands["weight_zero_point"] = [owner.zero_point]
        return
    if isinstance(owner, GetConstantOp):
        name = owner.symbol.root_reference.data
        for field, known in (
            ("weight_scale", parser.constant_scales),
            ("weight_zero_point", parser.constant_zero_points),
            ("weight_offset", parser.constant_offsets),
        ):
            if name in known:
                operands[field] = [read_constant(parser, known[name])]
        return
    parser.note_scale(given=False, offset=parser.pos)
    unit = ArithConstantOp(FloatAttr(1.0, f32))
    unit.result.name_hint = "unit_scale"
    parser.emit_before(unit)
    operands["weight_scale"] = [unit.result]


@irdl_op_definition
class BitLinearOp(QuantizedLayerOp):
    """y[..., n] = x[..., k] · w[n, k] + b[n]; activations are scaled by the row.

    With `act_group`, the size of the weight's groups, each group of a row has a scale of its own;
    where activations arrive as integers, their scales are then ... x groups.
    """

    name = "mico.bitlinear"

    act_group = opt_prop_def(I32)

    def verify_(self) -> None:
        super().verify_()
        if self.act_group is None:
            return
        if self.act_scale is not None or self.act_bits is None or self.weight_scale is None:
            raise VerifyException("act_group is for activations that the layer itself quantizes")
        size = self.act_group.value.data
        if self.granularity != ("group", size):
            raise VerifyException(f"act_group = {size}, but the weight has no such groups")

    def output_shape(self, input: shapes.Shape, weight: shapes.Shape) -> shapes.Shape:
        if len(weight) != 2:
            raise VerifyException(f"a linear weight is N x K, not {shapes.show(weight)}")
        if not input:
            raise VerifyException("the input needs at least one dimension")
        if not shapes.compatible(input[-1:], weight[1:]):
            raise VerifyException(
                f"the input has {shapes.show(input[-1:])} features, the weight takes "
                f"{shapes.show(weight[1:])}"
            )
        return (*input[:-1], weight[0])

    def rows_shape(self, input: shapes.Shape) -> shapes.Shape:
        return input[:-1]


class ConvolutionOp(QuantizedLayerOp):
    """What the convolutions share; activations are scaled by the sample.

    `padding` lists, for each spatial dimension, what is added before and after it; one number a
    dimension is accepted in text and means both sides.
    """

    RANK: ClassVar[int]

    def verify_(self) -> None:
        super().verify_()
        if self.weight_offset is not None:
            raise VerifyException("only the weight of a linear layer or a table has offsets")

    stride = prop_def(I64Array)
    padding = prop_def(I64Array)
    dilation = prop_def(I64Array)
    groups = prop_def(I32)

    def output_shape(self, input: shapes.Shape, weight: shapes.Shape) -> shapes.Shape:
        rank = self.RANK
        if len(weight) != rank + 2 or len(input) != rank + 2:
            raise VerifyException(
                f"{self.name} takes an input and a weight of rank {rank + 2}, not "
                f"{shapes.show(input)} and {shapes.show(weight)}"
            )
        shapes.check_groups(input[1], weight, self.groups.value.data)
        spatial = shapes.windows(
            input[2:], weight[2:], ints(self.stride), ints(self.padding), ints(self.dilation)
        )
        return (input[0], weight[0], *spatial)

    def rows_shape(self, input: shapes.Shape) -> shapes.Shape:
        return input[:1]

    @property
    def padding_pairs(self) -> tuple[tuple[int, int], ...]:
        return pairs(self.padding)

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        super().fill_attributes(operands, properties, results)
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

    CLAUSES: ClassVar[tuple[str, ...]] = ("weight_scale", "weight_zero_point", "weight_offset")

    indices = operand_def(IndexTensor)
    weight = operand_def(FloatOrFewBitTensor)
    weight_scale = opt_operand_def(Scale)
    weight_zero_point = opt_operand_def(ZeroPoint)
    weight_offset = opt_operand_def(Scale)
    result = result_def(FloatTensor)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def output_type(self) -> Attribute:
        table = shape_of(self.weight.type)
        if len(table) != 2:
            raise VerifyException(f"a table is rows x features, not {shapes.show(table)}")
        few_bit = element_width(self.weight.type) is not None
        element = f32 if few_bit else element_type(self.weight.type)
        return tensor(element, (*shape_of(self.indices.type), table[1]))

    def verify_(self) -> None:
        super().verify_()
        table = shape_of(self.weight.type)
        if element_width(self.weight.type) is None:
            if self.weight_scale or self.weight_zero_point or self.weight_offset:
                raise VerifyException("weight_scale given, but the table is float")
            return
        if self.weight_scale is None:
            raise VerifyException("a quantized table needs its weight_scale")
        zero_point = None if self.weight_zero_point is None else self.weight_zero_point.type
        check_zero_point(zero_point, element_width(self.weight.type), self.weight_scale.type)
        offset = None if self.weight_offset is None else self.weight_offset.type
        check_offset(offset, self.weight.type, self.weight_scale.type, zero_point)
        for value in (self.weight_scale, self.weight_zero_point):
            if value is not None:
                granularity(table, shape_of(value.type))

    @classmethod
    def fill_operands(cls, parser: SourceParser, operands: OperandValues) -> None:
        _find_scale(parser, operands)
