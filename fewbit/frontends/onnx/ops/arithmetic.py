"""Arithmetic, element by element."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor

from fewbit.frontends.onnx.kinds import BITS, UINT64, is_float, is_unsigned
from fewbit.frontends.onnx.table import Call, op, unary


@op("Add", wraps=True, any_sign=True)
def add(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a + b


@op("Sub", wraps=True, any_sign=True)
def sub(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a - b


@op("Mul", wraps=True, any_sign=True)
def mul(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a * b


@op("Div", wraps=True)
def div(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.dtype.is_floating_point else _truncated_quotient(a, b)


def _float_remainder(a: Tensor, b: Tensor) -> Tensor:
    """The remainder with the sign of `a`.

    Torch-mlir has an exact `remainder`; its `fmod` divides and rounds.
    """
    remainder = torch.remainder(torch.abs(a), torch.abs(b))
    return torch.where(a < 0, -remainder, remainder)


def _floor_quotient(a: Tensor, b: Tensor) -> Tensor:
    """Divide integers, rounding down; torch-mlir has no such division of bytes."""
    if a.dtype not in (torch.int8, torch.int16):
        return torch.div(a, b, rounding_mode="floor")
    return torch.div(a.to(torch.int32), b.to(torch.int32), rounding_mode="floor").to(a.dtype)


def _truncated_quotient(a: Tensor, b: Tensor) -> Tensor:
    """Divide integers, rounding to zero; torch-mlir's own division goes through floats."""
    quotient = _floor_quotient(a, b)
    inexact = (quotient * b != a) & (quotient < 0)
    return quotient + inexact.to(a.dtype)


@op("Mod")
def mod(call: Call, a: Tensor, b: Tensor) -> Tensor:
    if call.attr("fmod", 0):
        if a.dtype.is_floating_point:
            return _float_remainder(a, b)
        return a - _truncated_quotient(a, b) * b
    if a.dtype.is_floating_point:
        remainder = _float_remainder(a, b)
        return torch.where(
            (remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder
        )
    return a - _floor_quotient(a, b) * b


@op("Pow", tensors=2, wraps=True)
def power(call: Call, base: Tensor, exponent: Tensor) -> Tensor:
    if base.dtype.is_floating_point:
        if call.items(1) == [2]:
            return base * base + torch.zeros_like(exponent.to(base.dtype))
        return torch.pow(base, exponent.to(base.dtype))
    if exponent.dtype.is_floating_point:
        return torch.pow(base.to(torch.float64), exponent.to(torch.float64)).to(base.dtype)
    return _integer_power(base, exponent.to(base.dtype))


def _integer_power(base: Tensor, exponent: Tensor) -> Tensor:
    """Square and multiply, exact to the last bit; exponents are not negative."""
    result = torch.ones_like(base * exponent)
    square = base
    for bit in range(6):
        chosen = right_shift(exponent, bit) & 1
        result = result * torch.where(chosen != 0, square, torch.ones_like(square))
        square = square * square
    return result


@op("Neg", any_sign=True, wraps=True)
def negative(call: Call, a: Tensor) -> Tensor:
    return -a


@op("Abs")
def absolute(call: Call, a: Tensor) -> Tensor:
    return torch.abs(a)


@op("Sign")
def sign(call: Call, a: Tensor) -> Tensor:
    return torch.sign(a)


_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Reciprocal": torch.reciprocal,
    "Sqrt": torch.sqrt,
    "Exp": torch.exp,
    "Log": torch.log,
    "Sin": torch.sin,
    "Cos": torch.cos,
    "Tan": torch.tan,
    "Asin": torch.asin,
    "Acos": torch.acos,
    "Atan": torch.atan,
    "Sinh": torch.sinh,
    "Cosh": torch.cosh,
    "Asinh": torch.asinh,
    "Acosh": torch.acosh,
    "Atanh": torch.atanh,
    "Erf": torch.erf,
    "Floor": torch.floor,
    "Ceil": torch.ceil,
    "Round": torch.round,
}
unary(_UNARY)


def flip_sign_bit(x: Tensor) -> Tensor:
    """Flip the highest of 64 bits: the order of unsigned integers becomes that of signed ones."""
    return torch.bitwise_xor(x, torch.full_like(x, torch.iinfo(torch.int64).min))


def right_shift(x: Tensor, bits: int) -> Tensor:
    return torch.bitwise_right_shift(x, torch.full_like(x, bits))


@op("Max", any_sign=True)
def maximum(call: Call, *inputs: Tensor) -> Tensor:
    if call.kind(0) == UINT64:
        return flip_sign_bit(reduce(torch.maximum, [flip_sign_bit(x) for x in inputs]))
    return reduce(torch.maximum, inputs)


@op("Min", any_sign=True)
def minimum(call: Call, *inputs: Tensor) -> Tensor:
    if call.kind(0) == UINT64:
        return flip_sign_bit(reduce(torch.minimum, [flip_sign_bit(x) for x in inputs]))
    return reduce(torch.minimum, inputs)


@op("Sum")
def total(call: Call, *inputs: Tensor) -> Tensor:
    return reduce(torch.add, inputs)


@op("Mean")
def mean(call: Call, *inputs: Tensor) -> Tensor:
    return reduce(torch.add, inputs) / len(inputs)


@op("Clip", tensors=3)
def clip(call: Call, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    if call.version < 11:
        bounds = call.attr("min", -3.4028234663852886e38), call.attr("max", 3.4028234663852886e38)
        return torch.clamp(x, *bounds)
    bounds = [call.items(i) if call.has(i) else [] for i in (1, 2)]
    if is_float(call.kind(0)) and None not in bounds:
        numbers = [b[0] if b else None for b in bounds]
        if numbers == [None, None]:
            return x
        if all(n is None or n == n for n in numbers):
            return torch.clamp(x, *numbers)
    if low is not None and low.numel():
        x = torch.maximum(x, low.reshape([]))
    if high is not None and high.numel():
        x = torch.minimum(x, high.reshape([]))
    return x


@op("BitwiseAnd", any_sign=True)
def bitwise_and(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a & b


@op("BitwiseOr", any_sign=True)
def bitwise_or(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a | b


@op("BitwiseXor", any_sign=True)
def bitwise_xor(call: Call, a: Tensor, b: Tensor) -> Tensor:
    return a ^ b


@op("BitwiseNot", any_sign=True, wraps=True)
def bitwise_not(call: Call, a: Tensor) -> Tensor:
    return torch.bitwise_not(a)


@op("BitShift", any_sign=True, wraps=True)
def shift(call: Call, a: Tensor, b: Tensor) -> Tensor:
    """Shifts by the whole width or more leave nothing, or the sign; a processor's do not."""
    bits = BITS[call.kind(0)]
    beyond = (b >= bits) | (b < 0)
    inside = torch.where(beyond, torch.full_like(b, bits - 1), b)
    if call.attr("direction") == "LEFT":
        return torch.where(beyond, torch.zeros_like(a), torch.bitwise_left_shift(a, inside))
    if call.kind(0) == UINT64:
        # Without the copies of the sign that come in from the left.
        half = right_shift(a, 1) & (2**63 - 1)
        half = torch.bitwise_right_shift(half, (inside - 1).clamp(0, 63))
        moved = torch.where(inside > 0, half, a)
    else:
        moved = torch.bitwise_right_shift(a, inside)
    if is_unsigned(call.kind(0)):
        return torch.where(beyond, torch.zeros_like(moved), moved)
    return moved
