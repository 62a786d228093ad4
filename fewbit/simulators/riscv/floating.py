"""Floating-point instructions on register contents, for the simulator in Python.

Registers have 64 bits; a single is boxed: the upper half all ones, or it counts as NaN.
"""

from __future__ import annotations

from collections.abc import Callable

from fewbit.simulators.riscv.arithmetic import signed
from fewbit.simulators.riscv.softfloat import DOUBLE, SINGLE, Float

BOX = 0xFFFFFFFF << 32

Action = Callable[[int, int, int, int], int]
"""rs1, rs2, rs3 and the rounding mode to the result."""

_INTEGERS = {
    "w": (-1 << 31, (1 << 31) - 1),
    "wu": (0, (1 << 32) - 1),
    "l": (-1 << 63, (1 << 63) - 1),
    "lu": (0, (1 << 64) - 1),
}


def unbox(value: int) -> int:
    return value & 0xFFFFFFFF if value >= BOX else SINGLE.nan


def action(mnemonic: str, xlen: int) -> Action:
    """Return what an instruction does with registers' contents (not loads and stores)."""
    mask = (1 << xlen) - 1
    match mnemonic.split("."):
        case ["fmv", "x", "w"]:
            return lambda a, b, c, mode: signed(a, 32) & mask
        case ["fmv", "w", "x"]:
            return lambda a, b, c, mode: BOX | a & 0xFFFFFFFF
        case ["fmv", _, _]:
            return lambda a, b, c, mode: a
        case ["fcvt", "s", "d"]:
            return lambda a, b, c, mode: BOX | DOUBLE.convert(a, SINGLE, mode)
        case ["fcvt", "d", "s"]:
            return lambda a, b, c, mode: SINGLE.convert(unbox(a), DOUBLE, mode)
        case ["fcvt", to, kind] if to in _INTEGERS:
            return _to_integer(to, kind, mask)
        case ["fcvt", kind, source]:
            return _from_integer(kind, source)
        case [name, kind]:
            return _with_boxing(name, kind)
        case _:
            raise AssertionError(mnemonic)


def _to_integer(to: str, kind: str, mask: int) -> Action:
    low, high = _INTEGERS[to]
    bits = 32 if "w" in to else 64
    if kind == "s":
        return lambda a, b, c, mode: (
            signed(SINGLE.to_integer(unbox(a), low, high, mode), bits) & mask
        )
    return lambda a, b, c, mode: signed(DOUBLE.to_integer(a, low, high, mode), bits) & mask


def _from_integer(kind: str, source: str) -> Action:
    bits = 32 if "w" in source else 64
    whole = (1 << bits) - 1

    def value(a: int) -> int:
        return a & whole if source.endswith("u") else signed(a, bits)

    if kind == "s":
        return lambda a, b, c, mode: BOX | SINGLE.from_integer(value(a), mode)
    return lambda a, b, c, mode: DOUBLE.from_integer(value(a), mode)


def _with_boxing(name: str, kind: str) -> Action:
    if kind == "d":
        return _calculation(name, DOUBLE)
    plain = _calculation(name, SINGLE)
    if name in ("feq", "flt", "fle", "fclass"):
        return lambda a, b, c, mode: plain(unbox(a), unbox(b), unbox(c), mode)
    return lambda a, b, c, mode: BOX | plain(unbox(a), unbox(b), unbox(c), mode)


def _calculation(name: str, f: Float) -> Action:
    sign = f.sign
    actions: dict[str, Action] = {
        "fadd": lambda a, b, c, mode: f.add(a, b, mode),
        "fsub": lambda a, b, c, mode: f.add(a, b ^ sign, mode),
        "fmul": lambda a, b, c, mode: f.multiply(a, b, mode),
        "fdiv": lambda a, b, c, mode: f.divide(a, b, mode),
        "fsqrt": lambda a, b, c, mode: f.root(a, mode),
        "fmadd": lambda a, b, c, mode: f.fma(a, b, c, mode),
        "fmsub": lambda a, b, c, mode: f.fma(a, b, c ^ sign, mode),
        "fnmsub": lambda a, b, c, mode: f.fma(a ^ sign, b, c, mode),
        "fnmadd": lambda a, b, c, mode: f.fma(a ^ sign, b, c ^ sign, mode),
        "fsgnj": lambda a, b, c, mode: a & ~sign | b & sign,
        "fsgnjn": lambda a, b, c, mode: a & ~sign | ~b & sign,
        "fsgnjx": lambda a, b, c, mode: a ^ b & sign,
        "fmin": lambda a, b, c, mode: f.smaller(a, b),
        "fmax": lambda a, b, c, mode: f.larger(a, b),
        "feq": lambda a, b, c, mode: int(f.equal(a, b)),
        "flt": lambda a, b, c, mode: int(f.less(a, b)),
        "fle": lambda a, b, c, mode: int(f.less(a, b) or f.equal(a, b)),
        "fclass": lambda a, b, c, mode: f.classify(a),
    }
    return actions[name]
