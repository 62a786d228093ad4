"""Few-bit types: the element types, a quantized tensor as one value, a key-value cache.

`!mico.int<N>` (N = 1..8) and `!mico.ternary` are element types of `tensor` only; real MLIR
refuses them in memref and vector, so they are turned into packed bytes before bufferization.
What the integers mean, and how they are packed, is in `fewbit.numerics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    IntegerAttr,
    IntegerType,
    NoneType,
    ShapedType,
    TensorType,
    f32,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import base, irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.shapes import compatible, granularity
from fewbit.numerics.widths import Width

MAX_BITS = 8


@irdl_attr_definition
class IntType(ParametrizedAttribute, TypeAttribute):
    """A signed integer of exactly N bits, N = 1..8; one bit holds -1 or +1."""

    name = "mico.int"

    width: IntegerAttr[IntegerType] = param_def()

    def __init__(self, bits: int | IntegerAttr[IntegerType]) -> None:
        super().__init__(IntegerAttr(bits, i64) if isinstance(bits, int) else bits)

    @property
    def bits(self) -> int:
        return self.width.value.data

    def verify(self) -> None:
        if self.width.type != i64:
            raise VerifyException(f"the width of !mico.int is an i64, not {self.width.type}")
        if not 1 <= self.bits <= MAX_BITS:
            raise VerifyException(f"!mico.int<{self.bits}>: a width is 1 to {MAX_BITS} bits")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            start = parser.pos
            bits = parser.parse_integer(allow_boolean=False)
            end = parser.pos
            if parser.parse_optional_punctuation(":"):
                parser.parse_characters("i64")
        if not 1 <= bits <= MAX_BITS:
            parser.raise_error(
                f"!mico.int<{bits}>: a width is 1 to {MAX_BITS} bits",
                at_position=start,
                end_position=end,
            )
        return [IntegerAttr(bits, i64)]

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.bits}>")


@irdl_attr_definition
class TernaryType(ParametrizedAttribute, TypeAttribute):
    """-1, 0 or +1; stored in 2 bits."""

    name = "mico.ternary"

    @property
    def bits(self) -> int:
        return 2


FewBitType = IntType | TernaryType
FewBit = base(IntType) | base(TernaryType)
"""Constraint: a few-bit element type."""


def few_bit_type(width: Width | float | str) -> FewBitType:
    """Return the element type of a width."""
    width = Width.of(width)
    return TernaryType() if width.is_ternary else IntType(width.bits)


def width_of(type: FewBitType) -> Width:
    """Return the width of an element type."""
    return Width.of(1.58) if isinstance(type, TernaryType) else Width.of(type.bits)


def as_tensor(type: Attribute) -> TensorType[Attribute] | None:
    return cast(TensorType[Attribute], type) if isinstance(type, TensorType) else None


@lru_cache(4096)
def tensor(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    """Return a tensor type; the same few types are asked for over and over."""
    return TensorType(element, shape)


def element_type(type: Attribute) -> Attribute:
    """Return the elements of a tensor; a scalar is its own element."""
    tensor = as_tensor(type)
    return type if tensor is None else tensor.element_type


def element_width(type: Attribute) -> Width | None:
    """Return the width of a tensor's elements; None where they are not few-bit."""
    tensor = as_tensor(type)
    if tensor is None or not isinstance(tensor.element_type, FewBitType):
        return None
    return width_of(tensor.element_type)


def is_float_tensor(type: Attribute) -> bool:
    tensor = as_tensor(type)
    return tensor is not None and isinstance(tensor.element_type, AnyFloat)


def shape_of(type: Attribute) -> tuple[int, ...]:
    """Return the dimensions of a type, DYNAMIC_INDEX where unknown; a scalar has none."""
    return tuple(type.get_shape()) if isinstance(type, ShapedType) else ()


def _check_scale(scale: Attribute) -> None:
    if not isinstance(element_type(scale), Float32Type):
        raise VerifyException(f"a scale is f32 or a tensor of f32, not {scale}")


@irdl_attr_definition
class QTensorType(ParametrizedAttribute, TypeAttribute):
    """Integers together with their scale and zero point, as one value.

    The scale's shape is the granularity: `f32` or rank 0 for the tensor, rank 1 for output
    channels, rank 2 for groups along the reduction dimension.
    """

    name = "mico.qtensor"

    values: Attribute = param_def()
    scale: Attribute = param_def()
    zero_point: Attribute = param_def()

    def __init__(
        self, values: Attribute, scale: Attribute = f32, zero_point: Attribute | None = None
    ) -> None:
        super().__init__(values, scale, NoneType() if zero_point is None else zero_point)

    def verify(self) -> None:
        if element_width(self.values) is None:
            raise VerifyException(
                f"!mico.qtensor holds a tensor of few-bit integers, not {self.values}"
            )
        _check_scale(self.scale)
        granularity(shape_of(self.values), shape_of(self.scale))
        if isinstance(self.zero_point, NoneType):
            return
        if not isinstance(element_type(self.zero_point), IntegerType):
            raise VerifyException(f"a zero point is an integer or none, not {self.zero_point}")
        if shape_of(self.zero_point) not in ((), shape_of(self.scale)):
            raise VerifyException(f"the zero point is {self.zero_point}, its scale {self.scale}")
        width = element_width(self.values)
        if width is not None and width < Width.of(2):
            raise VerifyException(f"a zero point needs at least 2 bits, not {width}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            values = parser.parse_optional_type()
            if values is None:
                shape, element = parser.parse_ranked_shape()
                values = TensorType(element, shape)
            parser.parse_punctuation(",")
            if parser.parse_optional_keyword("scale"):
                parser.parse_punctuation(":")
            scale = parser.parse_type()
            zero_point = (
                parser.parse_type() if parser.parse_optional_punctuation(",") else NoneType()
            )
        return [values, scale, zero_point]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.parameters, printer.print_attribute)


@irdl_attr_definition
class KVCacheType(ParametrizedAttribute, TypeAttribute):
    """Keys or values of the tokens seen so far: batch x heads x capacity x head size.

    The elements may be few-bit; then `scale` is the type of the scales, else `none`.
    """

    name = "mico.kv_cache"

    values: Attribute = param_def()
    scale: Attribute = param_def()

    def __init__(self, values: Attribute, scale: Attribute | None = None) -> None:
        super().__init__(values, NoneType() if scale is None else scale)

    def verify(self) -> None:
        if as_tensor(self.values) is None or len(shape_of(self.values)) != 4:
            raise VerifyException(
                "!mico.kv_cache holds a tensor of batch x heads x capacity x head size, "
                f"not {self.values}"
            )
        if element_width(self.values) is None:
            if not is_float_tensor(self.values):
                raise VerifyException(
                    f"a cache holds floats or few-bit integers, not {self.values}"
                )
            if not isinstance(self.scale, NoneType):
                raise VerifyException("a cache of floats has no scale")
            return
        if isinstance(self.scale, NoneType):
            raise VerifyException("a cache of few-bit integers needs the type of its scales")
        _check_scale(self.scale)
        values, scale = shape_of(self.values), shape_of(self.scale)
        if len(scale) > 3 or not compatible(values[: len(scale)], scale):
            raise VerifyException(f"scales {self.scale} for the values {self.values}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            values = parser.parse_type()
            scale = parser.parse_type() if parser.parse_optional_punctuation(",") else NoneType()
        return [values, scale]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.parameters, printer.print_attribute)
