"""Handlers of floating-point instructions: this computer's own arithmetic, to the nearest.

Conversions to integers have every rounding mode; other instructions that ask for another mode than
the nearest are left to Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from fewbit.llvm.types import F32, F64, I1, I32, I64, Int
from fewbit.llvm.values import Value
from fewbit.simulators.riscv.floating import BOX
from fewbit.simulators.riscv.native.handler import RS1, RS2, RS3, Handler
from fewbit.simulators.riscv.softfloat import DOUBLE, SINGLE

_TYPES = {"s": (F32, I32, "f32", SINGLE), "d": (F64, I64, "f64", DOUBLE)}
_INTEGERS = ("w", "wu", "l", "lu")
_BOX = BOX - (1 << 64)
ROUNDINGS = ("rint", "trunc", "floor", "ceil", "round")
"""LLVM's functions for RISC-V's rounding modes, in their order."""


def handlers(xlen: int) -> Iterator[Handler]:
    for kind in _TYPES:
        yield from _memory(kind, xlen)
        yield from _calculations(kind, xlen)
        yield from _comparisons(kind, xlen)
        yield from _conversions(kind, xlen)
    yield from _moves(xlen)


def _take(h: Handler, field: int, kind: str) -> Value:
    """Return a register's bits; a single that is not boxed is NaN."""
    whole = h.get(field, I64)
    if kind == "d":
        return whole
    boxed = whole.compare("uge", _BOX)
    return h.select(boxed, h.convert("trunc", whole, I32), SINGLE.nan)


def _put(h: Handler, bits: Value) -> None:
    h.set(bits if bits.type == I64 else h.convert("zext", bits, I64) | _BOX)


def _number(h: Handler, field: int, kind: str) -> Value:
    return h.bits(_take(h, field, kind), _TYPES[kind][0])


def _result(h: Handler, value: Value, kind: str) -> Handler:
    """Set the result, the canonical NaN for any other, and end the handler."""
    _, whole, _, form = _TYPES[kind]
    bits = h.bits(value, whole)
    _put(h, h.select(_is_nan(value), form.nan, bits))
    return h.next()


def _is_nan(value: Value) -> Value:
    return value.compare("uno", value)


def _memory(kind: str, xlen: int) -> Iterator[Handler]:
    whole, size = _TYPES[kind][1], 4 if kind == "s" else 8
    letter = "w" if kind == "s" else "d"
    h = Handler(f"fl{letter}", xlen)
    _put(h, h.load(whole, h.place(size)))
    yield h.next()
    h = Handler(f"fs{letter}", xlen)
    at = h.place(size)
    h.store(h.get(RS2, whole), at)
    yield h.next()


def _calculations(kind: str, xlen: int) -> Iterator[Handler]:
    real, _, suffix, form = _TYPES[kind]
    for name, operation in {
        "fadd": Value.__add__, "fsub": Value.__sub__, "fmul": Value.__mul__,
        "fdiv": Value.__truediv__,
    }.items():  # fmt: skip
        h = Handler(f"{name}.{kind}", xlen)
        yield _result(h, operation(_number(h, RS1, kind), _number(h, RS2, kind)), kind)
    h = Handler(f"fsqrt.{kind}", xlen)
    yield _result(h, h.intrinsic(f"sqrt.{suffix}", real, _number(h, RS1, kind)), kind)
    for name, (product, addend) in {
        "fmadd": ("", ""), "fmsub": ("", "-"), "fnmsub": ("-", ""), "fnmadd": ("-", "-"),
    }.items():  # fmt: skip
        h = Handler(f"{name}.{kind}", xlen)
        a, b, c = (_number(h, field, kind) for field in (RS1, RS2, RS3))
        a, c = -a if product else a, -c if addend else c
        yield _result(h, h.intrinsic(f"fma.{suffix}", real, a, b, c), kind)
    for name in ("fsgnj", "fsgnjn", "fsgnjx"):
        h = Handler(f"{name}.{kind}", xlen)
        a, b = _take(h, RS1, kind), _take(h, RS2, kind)
        if name == "fsgnjn":
            b = b ^ -1
        elif name == "fsgnjx":
            b = a ^ b
        _put(h, (b & form.sign) | (a & (form.sign - 1)))
        yield h.next()


def _comparisons(kind: str, xlen: int) -> Iterator[Handler]:
    real, _, suffix, form = _TYPES[kind]
    for name, condition in {"feq": "oeq", "flt": "olt", "fle": "ole"}.items():
        h = Handler(f"{name}.{kind}", xlen)
        bit = _number(h, RS1, kind).compare(condition, _number(h, RS2, kind))
        h.set(h.convert("zext", bit, h.word))
        yield h.next()
    for name, condition, among_equals in (
        ("fmin", "olt", Value.__or__),
        ("fmax", "ogt", Value.__and__),
    ):
        h = Handler(f"{name}.{kind}", xlen)
        x, y = _take(h, RS1, kind), _take(h, RS2, kind)
        a, b = (h.bits(bits, real) for bits in (x, y))
        chosen = h.select(a.compare(condition, b), x, y)
        chosen = h.select(a.equals(b), among_equals(x, y), chosen)
        for value, other in ((b, x), (a, y)):
            chosen = h.select(_is_nan(value), other, chosen)
        yield _result(h, h.bits(chosen, real), kind)
    h = Handler(f"fclass.{kind}", xlen)
    value, mask = _number(h, RS1, kind), h.constant(h.word, 0)
    for place, test in enumerate((0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x1, 0x2)):
        is_it = h.intrinsic(f"is.fpclass.{suffix}", I1, value, h.constant(I32, test))
        mask = h.select(is_it, 1 << place, mask)
    h.set(mask)
    yield h.next()
    assert form.bits == int(suffix[1:])


def _conversions(kind: str, xlen: int) -> Iterator[Handler]:
    real, _, suffix, _ = _TYPES[kind]
    for name in _INTEGERS if xlen == 64 else _INTEGERS[:2]:
        bits = 32 if "w" in name else 64
        integer, unsigned = Int(bits), name.endswith("u")
        highest = (1 << bits) - 1 if unsigned else (1 << bits - 1) - 1
        for mode, function in enumerate(ROUNDINGS):
            h = Handler(f"fcvt.{name}.{kind}/{mode}", xlen)
            value = _number(h, RS1, kind)
            rounded = h.intrinsic(f"{function}.{suffix}", real, value)
            convert = f"fpto{'u' if unsigned else 's'}i.sat.{integer}.{suffix}"
            whole = h.intrinsic(convert, integer, rounded)
            h.set(h.extend(h.select(_is_nan(value), highest, whole)))
            yield h.next()
        h = Handler(f"fcvt.{kind}.{name}", xlen)
        how = "uitofp" if unsigned else "sitofp"
        yield _result(h, h.convert(how, h.get(RS1, integer), real), kind)


def _moves(xlen: int) -> Iterator[Handler]:
    h = Handler("fcvt.s.d", xlen)
    yield _result(h, h.convert("fptrunc", _number(h, RS1, "d"), F32), "s")
    h = Handler("fcvt.d.s", xlen)
    yield _result(h, h.convert("fpext", _number(h, RS1, "s"), F64), "d")
    h = Handler("fmv.x.w", xlen)
    h.set(h.extend(h.get(RS1, I32)))
    yield h.next()
    h = Handler("fmv.w.x", xlen)
    _put(h, h.get(RS1, I32))
    yield h.next()
    if xlen == 64:
        for name in ("fmv.x.d", "fmv.d.x"):
            h = Handler(name, xlen)
            h.set(h.get(RS1))
            yield h.next()
