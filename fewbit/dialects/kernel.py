"""The `kernel` dialect: what a target's kernels compute, channels-last (NHWC).

Between a layer and a call of a kernel there is one decision that no target is free of: the layout.
These ops have made it. They are pure ops on tensors, so layout can be moved about and what follows
can be fused into them; weights keep their plain shape, because how they are packed depends on the
instruction set. A contraction (matmul or convolution) is one of floats or of integers. Integers
give exact i32 accumulators, with a bias in i32, unless there is more. With both scales the result
is float, with the epilogue of floats: bias, a tensor that is added, an activation, bounds. With a
`step`, it gives the quantized result too; a result that nothing reads is not stored. With a
`multiplier` in place of scales, accumulators are also requantized to the integers of the next
layer, and never float; with a `shift` beside it, in integers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    Float32Type,
    FloatAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Dialect, Operation, OpResult, SSAValue
from xdsl.irdl import (
    AttrConstraint,
    AttrSizedOperandSegments,
    base,
    eq,
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

from fewbit.dialects.mico import shapes
from fewbit.dialects.mico.constraints import (
    F64,
    I32,
    FewBitTensor,
    Flag,
    I64Array,
    Int32,
    Name,
    Scale,
    WidthAttr,
    check_choice,
    check_offset,
    check_width,
    integer,
    read_width,
)
from fewbit.dialects.mico.pooling import PoolOp
from fewbit.dialects.mico.shapes import DYNAMIC, Shape
from fewbit.dialects.mico.syntax import (
    LayerOp,
    OperandValues,
    Properties,
    both_sides,
    int_array,
    ints,
    pairs,
)
from fewbit.dialects.mico.types import (
    FewBit,
    element_type,
    element_width,
    few_bit_type,
    shape_of,
    tensor,
)
from fewbit.dialects.traits import KeepsSign, PicksElements, TreatsFeaturesAlike
from fewbit.numerics.approximations.activations import ACTIVATIONS, Activation
from fewbit.numerics.integer import check_accumulator
from fewbit.numerics.widths import Width

_I8: AttrConstraint[IntegerType] = eq(i8)
_I32: AttrConstraint[IntegerType] = eq(i32)
Float = TensorType.constr(base(Float32Type))
Factor = TensorType.constr(base(Float32Type) | _I8 | FewBit)
Sum = TensorType.constr(base(Float32Type) | _I32)


class ContractionOp(LayerOp):
    """The base of matmul and convolution.

    For floats, clamp(f(Σ x · w + bias + add), minimum, maximum), f being the activation, if there
    is one; for integers, Σ x · w + bias in i32, or with scales
    clamp(f(Σ x · w · x_scale · weight_scale + bias + add), minimum, maximum) in f32, or with a
    multiplier also clamp(round((Σ x · w + bias) · multiplier), minimum, maximum); the multiplier
    is f32, or with a shift a fixed-point number, multiplier / 2^shift.
    """

    CLAUSES: ClassVar[tuple[str, ...]] = (
        "x_scale",
        "weight_scale",
        "weight_offset",
        "bias",
        "add",
        "multiplier",
        "shift",
    )

    x = operand_def(Factor)
    weight = operand_def(Factor)
    x_scale = opt_operand_def(Scale)
    weight_scale = opt_operand_def(Scale)
    weight_offset = opt_operand_def(Scale)
    bias = opt_operand_def(Sum)
    add = opt_operand_def(Float)
    multiplier = opt_operand_def(Scale | Int32)
    shift = opt_operand_def(Int32)
    activation = opt_prop_def(Name)
    minimum = opt_prop_def(F64)
    maximum = opt_prop_def(F64)
    step = opt_prop_def(F64)
    result = result_def(Sum)
    quantized = opt_result_def(FewBitTensor)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def is_float(self) -> bool:
        """Whether floats are multiplied."""
        return element_type(self.x.type) == f32

    @property
    def gives_floats(self) -> bool:
        """Whether the result is float: of floats, or of integers and their scales."""
        return self.is_float or self.x_scale is not None

    @property
    def scale_groups(self) -> int | None:
        """How many groups of a weight's row have a scale of their own; None for one in all."""
        scale = () if self.weight_scale is None else shape_of(self.weight_scale.type)
        return scale[1] if len(scale) == 2 else None

    @property
    def has_row_groups(self) -> bool:
        """Whether rows of the input have a scale for each group of the weight."""
        if self.scale_groups is None or self.x_scale is None:
            return False
        return len(shape_of(self.x_scale.type)) == len(shape_of(self.x.type))

    @property
    def activation_name(self) -> Activation | None:
        return None if self.activation is None else cast(Activation, self.activation.data)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        low, high = self.minimum, self.maximum
        return None if low is None else low.value.data, None if high is None else high.value.data

    @property
    def integer_bounds(self) -> tuple[float, float]:
        """The least and the largest integer that a multiplier gives."""
        assert self.quantized is not None
        width, (low, high) = _width(self.quantized.type), self.bounds
        return (width.qmin if low is None else low, width.qmax if high is None else high)

    def with_changes(
        self,
        result_types: Sequence[Attribute] | None = None,
        **changes: SSAValue | Operation | Attribute | None,
    ) -> Self:
        """Return a copy with these operands, attributes and results changed."""
        fields = {name: getattr(self, name) for name in self.CLAUSES}
        fields |= {name: self.properties.get(name) for name in self.attribute_names()}
        copy = type(self).of(
            self.x,
            self.weight,
            result_types=result_types or self.result_types,
            **(fields | changes),
        )
        copy.location = self.location
        return copy

    def output_shape(self, x: Shape, weight: Shape) -> Shape:
        raise NotImplementedError

    def rows_shape(self, x: Shape) -> Shape:
        """Return the leading dimensions of the input that may have scales of their own."""
        raise NotImplementedError

    def output_type(self) -> Attribute:
        shape = self.output_shape(shape_of(self.x.type), shape_of(self.weight.type))
        return tensor(f32 if self.gives_floats else i32, shape)

    def output_types(self) -> Sequence[Attribute]:
        result = self.output_type()
        if self.multiplier is None:
            return [result, *quantized_types(self.step, self.quantized, result)]
        width = None if self.quantized is None else element_width(self.quantized.type)
        if width is None or width.is_binary:
            raise VerifyException("a multiplier gives integers of more than one bit")
        return [result, tensor(few_bit_type(width), shape_of(result))]

    def verify_(self) -> None:
        super().verify_()
        if self.step is not None and (self.is_float or not self.gives_floats):
            raise VerifyException("has a step only where sums of integers become floats")
        if self.is_float != (element_type(self.weight.type) == f32):
            raise VerifyException("multiplies floats by floats or integers by integers")
        self._verify_scales()
        self._verify_epilogue()
        k = shapes.size(shape_of(self.weight.type)[1:])
        if not self.is_float and k != DYNAMIC:
            part = k // (self.scale_groups or 1)
            check_accumulator(part, _width(self.x.type), _width(self.weight.type))

    def _verify_scales(self) -> None:
        x_scale, weight_scale = self.x_scale, self.weight_scale
        if x_scale is None and weight_scale is None:
            if self.weight_offset is not None:
                raise VerifyException("has a weight_offset only beside a weight_scale")
            return
        if self.is_float:
            raise VerifyException("floats have no x_scale or weight_scale")
        if x_scale is None or weight_scale is None:
            raise VerifyException("has both x_scale and weight_scale, or neither")
        given = shape_of(x_scale.type)
        rows = self.rows_shape(shape_of(self.x.type))
        if self.has_row_groups:
            rows = (*rows, *shape_of(weight_scale.type)[1:])
        shapes.require(rows[: len(given)], given, "the input's scale")
        if (given := shape_of(weight_scale.type)) != ():
            self._verify_weight_scale(given, shape_of(self.weight.type))
        if self.weight_offset is None:
            return
        check_offset(self.weight_offset.type, self.weight.type, weight_scale.type, None)

    def _verify_weight_scale(self, scale: Shape, weight: Shape) -> None:
        shapes.require(weight[:1], scale, "the weight's scale")

    def _verify_epilogue(self) -> None:
        low, high = self.bounds
        if self.bias is not None:
            shapes.require(shape_of(self.weight.type)[:1], shape_of(self.bias.type), "the bias")
            expected = f32 if self.gives_floats else i32
            if element_type(self.bias.type) != expected:
                raise VerifyException(f"such a contraction has a bias of {expected}")
        if self.shift is not None and self.multiplier is None:
            raise VerifyException("has a shift only beside a multiplier")
        if self.multiplier is not None:
            self._verify_multiplier(self.multiplier)
        elif not self.gives_floats and (self.add is not None or (low, high) != (None, None)):
            raise VerifyException("bare sums of integers have no add, minimum or maximum")
        if self.activation is not None:
            check_choice("activation", self.activation, tuple(ACTIVATIONS))
            if not self.gives_floats:
                raise VerifyException("an activation is of floats")
        if self.add is not None:
            shapes.require(shape_of(self.result.type), shape_of(self.add.type), "what is added")
        if low is not None and high is not None and not low <= high:
            raise VerifyException(f"minimum = {low} is above maximum = {high}")

    def _verify_multiplier(self, multiplier: SSAValue) -> None:
        if self.gives_floats or self.add is not None:
            raise VerifyException("a multiplier is for sums of integers, without scales or add")
        if (element_type(multiplier.type) == f32) == (self.shift is not None):
            raise VerifyException("an integer multiplier needs a shift, a float one has none")
        for what, value in (("multiplier", multiplier), ("shift", self.shift)):
            if value is not None and (given := shape_of(value.type)) != ():
                shapes.require(shape_of(self.weight.type)[:1], given, f"the {what}")
        assert self.quantized is not None
        width = _width(self.quantized.type)
        for end in self.bounds:
            if end is not None and not (end.is_integer() and width.qmin <= end <= width.qmax):
                raise VerifyException(f"{end} is not an integer of {width} bits")


def quantized_types(
    step: FloatAttr[Any] | None, quantized: OpResult | None, result: Attribute
) -> list[Attribute]:
    """Return the type of the quantized result, if there is a step."""
    if step is None:
        return []
    if quantized is None or not 0 < step.value.data < inf:
        raise VerifyException(f"a step of {step.value.data} gives no result in whole steps")
    return [tensor(element_type(quantized.type), shape_of(result))]


def _width(type: Attribute) -> Width:
    return element_width(type) or Width.of(8)


@irdl_op_definition
class MatmulOp(ContractionOp):
    """y[..., n] = Σ x[..., k] · w[n, k].

    With a scale for each group along k, N x groups, each group's sum is scaled, and then added.
    Rows may have scales for the groups, too, ... x groups. With offsets, N x groups, weights count
    from 0, and a group's sum is
    Σ x · w · x_scale · weight_scale + Σ x · x_scale · weight_offset.
    """

    name = "kernel.matmul"

    def output_shape(self, x: Shape, weight: Shape) -> Shape:
        if len(weight) != 2 or not x:
            raise VerifyException(
                f"takes an input of ... x K and a weight of N x K, not {shapes.show(x)} and "
                f"{shapes.show(weight)}"
            )
        shapes.require(weight[1:], x[-1:], "a row of the input")
        return (*x[:-1], weight[0])

    def rows_shape(self, x: Shape) -> Shape:
        return x[:-1]

    def _verify_weight_scale(self, scale: Shape, weight: Shape) -> None:
        if len(scale) != 2:
            super()._verify_weight_scale(scale, weight)
            return
        shapes.require(weight[:1], scale[:1], "the weight's scale")
        if scale[1] < 1 or (weight[1] != DYNAMIC and weight[1] % scale[1] != 0):
            raise VerifyException(f"{scale[1]} groups do not divide a row of {weight[1]}")


@irdl_op_definition
class Conv2dOp(ContractionOp):
    """Convolution of N x H x W x C by O x C/groups x kh x kw; depthwise where groups is C."""

    name = "kernel.conv2d"

    stride = prop_def(I64Array)
    padding = prop_def(I64Array)
    dilation = prop_def(I64Array)
    groups = prop_def(I32)

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "stride": int_array(1, 1),
        "padding": int_array(0, 0),
        "dilation": int_array(1, 1),
        "groups": integer(1),
    }

    def output_shape(self, x: Shape, weight: Shape) -> Shape:
        if len(x) != 4 or len(weight) != 4:
            raise VerifyException(
                f"takes N x H x W x C and O x C/groups x kh x kw, not {shapes.show(x)} and "
                f"{shapes.show(weight)}"
            )
        shapes.check_groups(x[3], weight, self.groups.value.data)
        spatial = shapes.windows(
            x[1:3], weight[2:], ints(self.stride), ints(self.padding), ints(self.dilation)
        )
        return (x[0], *spatial, weight[0])

    def rows_shape(self, x: Shape) -> Shape:
        return x[:1]

    @property
    def padding_pairs(self) -> tuple[tuple[int, int], ...]:
        return pairs(self.padding)

    @classmethod
    def fill_attributes(
        cls, operands: OperandValues, properties: Properties, results: Sequence[Attribute]
    ) -> None:
        properties["padding"] = both_sides(properties["padding"], 2)


def _picks_largest(op: Pool2dOp) -> bool:
    return op.kind.data == "max" and op.step is None


@irdl_op_definition
class Pool2dOp(PoolOp):
    """The largest value or the mean of each window of N x H x W x C, as mico's poolings.

    The largest is of floats or of integers; of floats also in whole steps.
    """

    name = "kernel.pool2d"

    x = operand_def(Factor)
    kind = prop_def(Name)
    count_include_pad = prop_def(Flag)
    step = opt_prop_def(F64)
    result = result_def(Factor)
    quantized = opt_result_def(FewBitTensor)

    traits = traits_def(PicksElements(where=_picks_largest))

    DEFAULTS: ClassVar[dict[str, Attribute]] = {
        "padding": int_array(0, 0),
        "ceil_mode": BoolAttr.from_bool(False),
        "count_include_pad": BoolAttr.from_bool(True),
    }

    def output_type(self) -> Attribute:
        x = shape_of(self.x.type)
        if len(x) != 4:
            raise VerifyException(f"pools N x H x W x C, not {shapes.show(x)}")
        spatial = self.windows(x[1:3], (1, 1))
        return tensor(element_type(self.x.type), (x[0], *spatial, x[3]))

    def output_types(self) -> Sequence[Attribute]:
        result = self.output_type()
        return [result, *quantized_types(self.step, self.quantized, result)]

    def verify_(self) -> None:
        check_choice("kind", self.kind, KINDS)
        super().verify_()
        is_float = element_type(self.x.type) == f32
        if not is_float and self.kind.data == "average":
            raise VerifyException("means are of floats")
        if self.step is not None and not (is_float and self.kind.data == "max"):
            raise VerifyException("has a step only for the largest of floats")


KINDS = ("max", "average")


@irdl_op_definition
class QuantizeRowsOp(LayerOp):
    """Integers and their scales, by the largest magnitude of each row; below 3 bits by the mean.

    A row is all that has one scale: a row, a sample or the tensor, as `mico.activation_quant` says.
    """

    name = "kernel.quantize_rows"

    x = operand_def(Float)
    bits = prop_def(WidthAttr)
    granularity = prop_def(Name)
    result = result_def(TensorType.constr(FewBit))
    scale = result_def(Float)

    traits = traits_def(KeepsSign(), TreatsFeaturesAlike())

    DEFAULTS: ClassVar[dict[str, Attribute]] = {"granularity": StringAttr("row")}

    def output_types(self) -> Sequence[Attribute]:
        check_choice("granularity", self.granularity, GRANULARITIES)
        check_width("bits", self.bits)
        shape = shape_of(self.x.type)
        rows = {"row": shape[:-1], "sample": shape[:1], "tensor": ()}[self.granularity.data]
        return [tensor(few_bit_type(self.width), shape), tensor(f32, rows)]

    @property
    def width(self) -> Width:
        return read_width(self.bits)


GRANULARITIES = ("row", "sample", "tensor")

Kernel = Dialect("kernel", [MatmulOp, Conv2dOp, Pool2dOp, QuantizeRowsOp], [])
