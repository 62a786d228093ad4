"""Numbers as text, without divisions: these would be calls of functions on some cores."""

from __future__ import annotations

from fewbit.codegen.boot.module import BootModule
from fewbit.llvm.types import I32, Int

_DIGITS = {32: 10, 64: 19}
"""Decimal digits of the largest number; of 64 bits, as a signed one."""


def add_printing(module: BootModule, decimal: Int = I32, hexadecimal: Int = I32) -> None:
    """Add `put_hexadecimal` and `put_decimal`, lines of a number each, on a module's `put_text`."""
    module.lines.append("@digits = internal global [32 x i8] zeroinitializer, align 4")
    _add_hexadecimal(module, hexadecimal)
    _add_decimal(module, decimal)


def _add_hexadecimal(module: BootModule, type: Int) -> None:
    put, number = module.find("put_text"), module.function("put_hexadecimal", f"{type} value")
    (value,) = number.parameters
    digits, count = number.symbol("digits"), type.bits // 4
    with number.loop(0, count) as loop:
        place = loop.index
        if place.type != type:
            is_wider = module.index.bits > type.bits
            place = number.convert("trunc" if is_wider else "zext", place, type)
        nibble = value.shift_right(number.constant(type, type.bits - 4) - place.shift_left(2)) & 15
        letter = nibble + number.select(
            nibble > 9, number.constant(type, 87), number.constant(type, 48)
        )
        number.store(number.convert("trunc", letter, "i8"), digits, loop.index)
    number.store(number.constant("i8", 10), digits, count)
    number.store(number.constant("i8", 0), digits, count + 1)
    number.call(put, digits)
    number.ret()


def _add_decimal(module: BootModule, type: Int) -> None:
    put, decimal = module.find("put_text"), module.function("put_decimal", f"{type} value")
    (value,) = decimal.parameters
    digits, zero = decimal.symbol("digits"), decimal.constant("i8", 0)
    left, place = value, decimal.constant(module.index, 0)
    for power in range(_DIGITS[type.bits] - 1, -1, -1):
        unit = decimal.constant(type, 10**power)
        with decimal.loop(0, 9, carried=[left, decimal.integer(0)]) as loop:
            rest, count = loop.carried
            is_more = rest.compare("uge", unit)
            loop.carry(
                decimal.select(is_more, rest - unit, rest),
                count + decimal.convert("zext", is_more, module.index),
            )
        left, count = loop.results
        decimal.store(decimal.convert("trunc", count + 48, "i8"), digits, place)
        is_seen = count.differs(0) | place.differs(0) if power else decimal.constant("i1", 1)
        place = place + decimal.convert("zext", is_seen, module.index)
    decimal.store(decimal.constant("i8", 10), digits, place)
    decimal.store(zero, digits, place + 1)
    decimal.call(put, digits)
    decimal.ret()
