"""The arith dialect.

Integers wrap around at the width of their type. Where MLIR leaves the result undefined, we define
it: shifting by the width or more gives 0 (shrsi: the sign), and a float too large for its integer
type saturates, NaN giving 0. Division by zero stops the run. Fast-math and overflow flags only
permit a target to deviate, so they change nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from fewbit.dialects.upstream.arith import IndexCastUIOp, RemFOp
from fewbit.errors import InterpretError
from fewbit.interpreter import floats
from fewbit.interpreter.constants import read_constant
from fewbit.interpreter.integers import (
    high_product,
    largest,
    signed,
    smallest,
    unsigned,
    wrap,
)
from fewbit.interpreter.interpreter import Frame
from fewbit.interpreter.registry import register, register_function
from fewbit.interpreter.values import Value, bit_width, dtype_of

Binary = Callable[[Any, Any], Any]


@register(arith.ConstantOp, elementwise=True)
def constant(frame: Frame, op: arith.ConstantOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (read_constant(op.value, op.result.type),)


def _on_integers(op_class: type[Operation], compute: Binary, view: Binary = signed) -> None:
    """Register a binary op that computes on signed or unsigned numbers and wraps."""

    def semantics(frame: Frame, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        width = bit_width(op.results[0].type)
        lhs, rhs = (view(operand, width) for operand in operands)
        return (wrap(compute(lhs, rhs), width),)

    register(op_class, elementwise=True)(semantics)


def _nonzero(compute: Binary) -> Binary:
    def checked(lhs: Value, rhs: Value) -> Value:
        if not np.all(rhs):
            raise InterpretError("divides by zero")
        return compute(lhs, rhs)

    return checked


def _truncating_division(lhs: Value, rhs: Value) -> Value:
    floor = lhs // rhs
    rounded_down = (floor * rhs != lhs) & ((lhs < 0) != (rhs < 0))
    return floor + rounded_down.astype(lhs.dtype)


def _ceiling_division(lhs: Value, rhs: Value) -> Value:
    floor = lhs // rhs
    return floor + (floor * rhs != lhs).astype(lhs.dtype)


_on_integers(arith.AddiOp, np.add)
_on_integers(arith.SubiOp, np.subtract)
_on_integers(arith.MuliOp, np.multiply)
_on_integers(arith.AndIOp, np.bitwise_and)
_on_integers(arith.OrIOp, np.bitwise_or)
_on_integers(arith.XOrIOp, np.bitwise_xor)
_on_integers(arith.MinSIOp, np.minimum)
_on_integers(arith.MaxSIOp, np.maximum)
_on_integers(arith.MinUIOp, np.minimum, unsigned)
_on_integers(arith.MaxUIOp, np.maximum, unsigned)
_on_integers(arith.DivSIOp, _nonzero(_truncating_division))
_on_integers(arith.DivUIOp, _nonzero(np.floor_divide), unsigned)
_on_integers(arith.FloorDivSIOp, _nonzero(np.floor_divide))
_on_integers(arith.CeilDivSIOp, _nonzero(_ceiling_division))
_on_integers(arith.CeilDivUIOp, _nonzero(_ceiling_division), unsigned)
_on_integers(arith.RemSIOp, _nonzero(np.fmod))
_on_integers(arith.RemUIOp, _nonzero(np.remainder), unsigned)


@register(arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp, elementwise=True)
def shift(
    frame: Frame, op: arith.ShLIOp | arith.ShRUIOp | arith.ShRSIOp, operands: Sequence[Value]
) -> Sequence[Value]:
    width = bit_width(op.result.type)
    amount = unsigned(operands[1], width)
    if isinstance(op, arith.ShRSIOp):
        bits, compute = signed(operands[0], width), np.right_shift
        amount = np.minimum(amount, amount.dtype.type(width - 1))
        return (wrap(compute(bits, amount.astype(bits.dtype)), width),)
    compute = np.left_shift if isinstance(op, arith.ShLIOp) else np.right_shift
    bits = unsigned(operands[0], width)
    kept = amount < width
    shifted = compute(bits, np.where(kept, amount, amount.dtype.type(0)))
    return (wrap(np.where(kept, shifted, bits.dtype.type(0)), width),)


@register(arith.AddUIExtendedOp, elementwise=True)
def addui_extended(
    frame: Frame, op: arith.AddUIExtendedOp, operands: Sequence[Value]
) -> Sequence[Value]:
    width = bit_width(op.sum.type)
    lhs, rhs = (unsigned(operand, width) for operand in operands)
    total = wrap(lhs + rhs, width)
    return total, unsigned(total, width) < lhs


@register(arith.MulUIExtendedOp, arith.MulSIExtendedOp, elementwise=True)
def mul_extended(
    frame: Frame, op: arith.MulUIExtendedOp | arith.MulSIExtendedOp, operands: Sequence[Value]
) -> Sequence[Value]:
    width = bit_width(op.low.type)
    is_signed = isinstance(op, arith.MulSIExtendedOp)
    if width <= 32:
        view, wide = (signed, np.int64) if is_signed else (unsigned, np.uint64)
        lhs, rhs = (view(operand, width).astype(wide) for operand in operands)
        product = lhs * rhs
        return wrap(product, width), wrap(product >> wide(width), width)
    lhs, rhs = (operand.astype(np.int64) for operand in operands)
    if width < 64:
        raise InterpretError(f"the double-width product of i{width} is not interpreted")
    high = high_product(lhs.view(np.uint64), rhs.view(np.uint64)).view(np.int64)
    if is_signed:
        # Each negative factor counted 2**64 too much in the unsigned product.
        high = high - np.where(lhs < 0, rhs, 0) - np.where(rhs < 0, lhs, 0)
    return lhs * rhs, high


_CMPI: tuple[tuple[Binary, Binary], ...] = (
    (np.equal, signed), (np.not_equal, signed),
    (np.less, signed), (np.less_equal, signed), (np.greater, signed), (np.greater_equal, signed),
    (np.less, unsigned), (np.less_equal, unsigned),
    (np.greater, unsigned), (np.greater_equal, unsigned),
)  # fmt: skip


@register(arith.CmpiOp, elementwise=True)
def cmpi(frame: Frame, op: arith.CmpiOp, operands: Sequence[Value]) -> Sequence[Value]:
    compare, view = _CMPI[op.predicate.value.data]
    width = bit_width(op.lhs.type)
    return (compare(*(view(operand, width) for operand in operands)),)


_ORDERED: tuple[Binary, ...] = (
    lambda a, b: np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), bool)[()],
    np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal,
    lambda a, b: ~(np.isnan(a) | np.isnan(b)),
)  # fmt: skip


_NEGATED = (6, 5, 4, 3, 2, 1, 7, 0)
"""The unordered predicates from ueq on, as negations: ueq is not one, ugt is not ole, …"""


@register(arith.CmpfOp, elementwise=True)
def cmpf(frame: Frame, op: arith.CmpfOp, operands: Sequence[Value]) -> Sequence[Value]:
    predicate = op.predicate.value.data
    lhs, rhs = operands
    unordered = np.isnan(lhs) | np.isnan(rhs)
    if predicate < 8:
        return (_ORDERED[predicate](lhs, rhs) & ~unordered,)
    return (~_ORDERED[_NEGATED[predicate - 8]](lhs, rhs) | unordered,)


@register(arith.SelectOp, elementwise=True)
def select(frame: Frame, op: arith.SelectOp, operands: Sequence[Value]) -> Sequence[Value]:
    return (np.where(*operands)[()],)


# numpy computes these in the operands' own type, rounding once.
register_function(arith.AddfOp, np.add)
register_function(arith.SubfOp, np.subtract)
register_function(arith.MulfOp, np.multiply)
register_function(arith.DivfOp, np.divide)
register_function(RemFOp, np.fmod)
register_function(arith.NegfOp, np.negative)
register_function(arith.MaximumfOp, floats.maximum)
register_function(arith.MinimumfOp, floats.minimum)
register_function(arith.MaxnumfOp, np.fmax)
register_function(arith.MinnumfOp, np.fmin)


def _cast(
    compute: Callable[[Value, Attribute, Attribute], Value], *op_classes: type[Operation]
) -> None:
    def semantics(frame: Frame, op: Operation, operands: Sequence[Value]) -> Sequence[Value]:
        return (compute(operands[0], op.operands[0].type, op.results[0].type),)

    register(*op_classes, elementwise=True)(semantics)


def _resize_signed(value: Value, source: Attribute, target: Attribute) -> Value:
    width = bit_width(target)
    value = signed(value, bit_width(source))
    return wrap(value.astype(np.int64), width)


def _resize_unsigned(value: Value, source: Attribute, target: Attribute) -> Value:
    return wrap(unsigned(value, bit_width(source)).astype(np.uint64), bit_width(target))


def _bitcast(value: Value, source: Attribute, target: Attribute) -> Value:
    dtype = dtype_of(target)
    if source == target:
        return value
    if value.dtype.itemsize != dtype.itemsize or "b" in (value.dtype.kind, dtype.kind):
        raise InterpretError(f"bitcast from {source} to {target} is not interpreted")
    return value.view(dtype)


def _change_float(value: Value, source: Attribute, target: Attribute) -> Value:
    return floats.narrow(floats.widen(value), dtype_of(target))


def _float_from_signed(value: Value, source: Attribute, target: Attribute) -> Value:
    return _float_from(signed(value, bit_width(source)), target)


def _float_from_unsigned(value: Value, source: Attribute, target: Attribute) -> Value:
    return _float_from(unsigned(value, bit_width(source)), target)


def _float_from(value: Value, target: Attribute) -> Value:
    dtype = dtype_of(target)
    if dtype.itemsize >= 4:
        return value.astype(dtype)
    return floats.narrow(floats.widen(value), dtype)


def _signed_from_float(value: Value, source: Attribute, target: Attribute) -> Value:
    width = bit_width(target)
    return wrap(_saturate(floats.widen(value), smallest(width), largest(width), np.int64), width)


def _unsigned_from_float(value: Value, source: Attribute, target: Attribute) -> Value:
    width = bit_width(target)
    return wrap(_saturate(floats.widen(value), 0, (1 << width) - 1, np.uint64), width)


def _saturate(value: Any, low: int, high: int, dtype: Any) -> Value:
    whole = np.trunc(value)
    inside = (whole >= low) & (whole <= high) & (whole < 2.0 ** (64 if low == 0 else 63))
    converted = np.where(inside, whole, 0.0).astype(dtype)
    too_high: Value = np.full_like(converted, high)
    too_low: Value = np.full_like(converted, low)
    return np.where(inside | np.isnan(value), converted, np.where(whole > 0, too_high, too_low))


_cast(_resize_signed, arith.TruncIOp, arith.ExtSIOp, arith.IndexCastOp)
_cast(_resize_unsigned, arith.ExtUIOp, IndexCastUIOp)
_cast(_bitcast, arith.BitcastOp)
_cast(_change_float, arith.ExtFOp, arith.TruncFOp)
_cast(_float_from_signed, arith.SIToFPOp)
_cast(_float_from_unsigned, arith.UIToFPOp)
_cast(_signed_from_float, arith.FPToSIOp)
_cast(_unsigned_from_float, arith.FPToUIOp)
