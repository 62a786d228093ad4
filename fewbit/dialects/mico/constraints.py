"""What operands, results and attributes of the dialect may be."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    AnyTensorTypeConstr,
    ArrayAttr,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, base, eq
from xdsl.utils.exceptions import VerifyException

from fewbit.dialects.mico.types import FewBit, TernaryType, element_width, shape_of, width_of
from fewbit.numerics.widths import Width

Integer = IntegerAttr[IntegerType]
Integers = ArrayAttr[Integer]

_I1: AttrConstraint[IntegerType] = eq(i1)
_I32: AttrConstraint[IntegerType] = eq(i32)
_I64: AttrConstraint[IntegerType] = eq(i64)

AnyTensor = AnyTensorTypeConstr
FloatTensor = TensorType.constr(AnyFloatConstr)
FewBitTensor = TensorType.constr(FewBit)
IndexTensor = TensorType.constr(base(IntegerType) | base(IndexType))
AccumulatorTensor = TensorType.constr(_I32)
FloatOrFewBitTensor = TensorType.constr(AnyFloatConstr | FewBit)
FloatOrAccumulatorTensor = TensorType.constr(AnyFloatConstr | _I32)

Scale = base(Float32Type) | TensorType.constr(base(Float32Type))
Int32 = _I32 | TensorType.constr(_I32)
ZeroPoint = base(IntegerType) | TensorType.constr(base(IntegerType))

I32 = cast(AttrConstraint[Integer], IntegerAttr.constr(_I32))
F64 = FloatAttr.constr(base(Float64Type))
I64Array = cast(AttrConstraint[Integers], ArrayAttr.constr(IntegerAttr.constr(_I64)))
Name = base(StringAttr)
Flag = cast(AttrConstraint[Integer], IntegerAttr.constr(_I1))
WidthAttr = I32 | base(TernaryType)
"""A width: an i32 of 1 to 8, or the ternary type."""


def integer(value: int) -> IntegerAttr[IntegerType]:
    return IntegerAttr(value, i32)


def number(value: float) -> FloatAttr[Float64Type]:
    return FloatAttr(value, f64)


def width_attr(width: Width | float | str) -> IntegerAttr[IntegerType] | TernaryType:
    """Return a width as the attribute that ops carry."""
    width = Width.of(width)
    return TernaryType() if width.is_ternary else integer(width.bits)


def read_width(attr: IntegerAttr[IntegerType] | TernaryType) -> Width:
    """Return the width in an attribute that `check_width` has passed."""
    return width_of(attr) if isinstance(attr, TernaryType) else Width.of(attr.value.data)


def check_width(name: str, attr: Attribute | None) -> None:
    if not isinstance(attr, IntegerAttr):
        return
    bits = cast(Integer, attr).value.data
    if not 1 <= bits <= 8:
        raise VerifyException(f"{name} = {bits}: a width is 1 to 8 bits")


def check_choice(name: str, attr: StringAttr | None, choices: tuple[str, ...]) -> None:
    if attr is not None and attr.data not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        raise VerifyException(f'{name} is one of {listed}, not "{attr.data}"')


def check_offset(
    offset: Attribute | None,
    values: Attribute,
    scale: Attribute | None,
    zero_point: Attribute | None,
) -> None:
    """Check that an offset is for groups, of the shape of their scales, and of at least 2 bits."""
    if offset is None:
        return
    if zero_point is not None:
        raise VerifyException("integers have a zero point or an offset, not both")
    width = element_width(values)
    if width is not None and width < Width.of(2):
        raise VerifyException(f"an offset needs at least 2 bits, not {width}")
    if len(shape_of(offset)) != 2:
        raise VerifyException(f"offsets are for groups, N x groups, not {offset}")
    if scale is None or shape_of(offset) != shape_of(scale):
        raise VerifyException(f"the offset is {offset}, its scale {scale or 'missing'}")


def check_zero_point(
    zero_point: Attribute | None, width: Width | None, scale: Attribute | None = None
) -> None:
    """Check that a zero point has at least 2 bits, and the shape of its scale."""
    if zero_point is None or width is None:
        return
    if width < Width.of(2):
        raise VerifyException(f"a zero point needs at least 2 bits, not {width}")
    shape = shape_of(zero_point)
    if scale is not None and shape not in ((), shape_of(scale)):
        raise VerifyException(f"the zero point is {zero_point}, its scale {scale}")
