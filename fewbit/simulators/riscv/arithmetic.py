"""Integer instructions as functions of two unsigned numbers, for the simulator in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

Binary = Callable[[int, int], int]


def signed(value: int, bits: int) -> int:
    """Read the low bits of a number as signed."""
    half = 1 << bits - 1
    return ((value & (1 << bits) - 1) ^ half) - half


@cache
def operations(xlen: int) -> dict[str, Binary]:
    """Return operations by mnemonic without `i` (`add` is also `addi`), with those of W, if any."""
    by_mnemonic = _of_width(xlen, xlen)
    if xlen == 64:
        narrow = _of_width(32, 64)
        for name in ("add", "sub", "sll", "srl", "sra", "mul", "div", "divu", "rem", "remu"):
            by_mnemonic[f"{name}w"] = narrow[name]
    return by_mnemonic


def _of_width(bits: int, xlen: int) -> dict[str, Binary]:
    mask, low, lowest = (1 << xlen) - 1, (1 << bits) - 1, -1 << bits - 1

    def s(value: int) -> int:
        return signed(value, bits)

    def fit(value: int) -> int:
        return s(value) & mask

    def divide(a: int, b: int) -> int:
        x, y = s(a), s(b)
        if y == 0:
            return mask
        if x == lowest and y == -1:
            return x & mask
        quotient = abs(x) // abs(y)
        return (quotient if (x < 0) == (y < 0) else -quotient) & mask

    def remainder(a: int, b: int) -> int:
        x, y = s(a), s(b)
        if y == 0:
            return x & mask
        size = abs(x) % abs(y)
        return (-size if x < 0 else size) & mask

    def divide_unsigned(a: int, b: int) -> int:
        return fit((a & low) // (b & low)) if b & low else mask

    def remainder_unsigned(a: int, b: int) -> int:
        return fit((a & low) % (b & low)) if b & low else fit(a)

    return {
        "add": lambda a, b: fit(a + b),
        "sub": lambda a, b: fit(a - b),
        "sll": lambda a, b: fit(a << b % bits),
        "srl": lambda a, b: fit((a & low) >> b % bits),
        "sra": lambda a, b: fit(s(a) >> b % bits),
        "slt": lambda a, b: int(s(a) < s(b)),
        "sltu": lambda a, b: int(a < b),
        "xor": lambda a, b: a ^ b,
        "or": lambda a, b: a | b,
        "and": lambda a, b: a & b,
        "mul": lambda a, b: fit(a * b),
        "mulh": lambda a, b: s(a) * s(b) >> bits & mask,
        "mulhsu": lambda a, b: s(a) * b >> bits & mask,
        "mulhu": lambda a, b: a * b >> bits & mask,
        "div": divide,
        "divu": divide_unsigned,
        "rem": remainder,
        "remu": remainder_unsigned,
    }


def branches(xlen: int) -> dict[str, Callable[[int, int], bool]]:
    return {
        "beq": lambda a, b: a == b,
        "bne": lambda a, b: a != b,
        "blt": lambda a, b: signed(a, xlen) < signed(b, xlen),
        "bge": lambda a, b: signed(a, xlen) >= signed(b, xlen),
        "bltu": lambda a, b: a < b,
        "bgeu": lambda a, b: a >= b,
    }
