"""Handlers of floating-point instructions: this computer's own arithmetic, to the nearest.

Conversions to integers have every rounding mode; other instructions that ask for another mode than
the nearest are left to Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from fewbit.simulators.riscv.floating import BOX
from fewbit.simulators.riscv.native.handler import RS1, RS2, RS3, Handler
from fewbit.simulators.riscv.softfloat import DOUBLE, SINGLE

_TYPES = {"s": ("float", "i32", "f32", SINGLE), "d": ("double", "i64", "f64", DOUBLE)}
_INTEGERS = ("w", "wu", "l", "lu")
ROUNDINGS = ("rint", "trunc", "floor", "ceil", "round")
"""LLVM's functions for RISC-V's rounding modes, in their order."""


def handlers(xlen: int) -> Iterator[str]:
    for kind in _TYPES:
        yield from _memory(kind, xlen)
        yield from _calculations(kind, xlen)
        yield from _comparisons(kind, xlen)
        yield from _conversions(kind, xlen)
    yield from _moves(xlen)


def _take(h: Handler, field: int, kind: str) -> str:
    """A register's bits; a single that is not boxed is NaN."""
    whole = h.get(field, "i64")
    if kind == "d":
        return whole
    boxed = h.val(f"icmp uge i64 {whole}, {BOX - (1 << 64)}")
    low = h.val(f"trunc i64 {whole} to i32")
    return h.val(f"select i1 {boxed}, i32 {low}, i32 {SINGLE.nan}")


def _put(h: Handler, bits: str, kind: str) -> None:
    if kind == "s":
        wide = h.val(f"zext i32 {bits} to i64")
        bits = h.val(f"or i64 {wide}, {BOX - (1 << 64)}")
    h.set(bits, "i64")


def _number(h: Handler, field: int, kind: str) -> str:
    real, whole, _, _ = _TYPES[kind]
    return h.val(f"bitcast {whole} {_take(h, field, kind)} to {real}")


def _result(h: Handler, value: str, kind: str) -> str:
    """Put a result, the canonical NaN for any other."""
    real, whole, _, form = _TYPES[kind]
    bits = h.val(f"bitcast {real} {value} to {whole}")
    bad = h.val(f"fcmp uno {real} {value}, {value}")
    _put(h, h.val(f"select i1 {bad}, {whole} {form.nan}, {whole} {bits}"), kind)
    return h.next()


def _memory(kind: str, xlen: int) -> Iterator[str]:
    whole, size = _TYPES[kind][1], 4 if kind == "s" else 8
    letter = "w" if kind == "s" else "d"
    h = Handler(f"fl{letter}", xlen)
    _put(h, h.val(f"load {whole}, ptr {h.address(size)}"), kind)
    yield h.next()
    h = Handler(f"fs{letter}", xlen)
    at = h.address(size)
    h.do(f"store {whole} {h.get(RS2, whole)}, ptr {at}")
    yield h.next()


def _calculations(kind: str, xlen: int) -> Iterator[str]:
    real, whole, suffix, form = _TYPES[kind]
    for name in ("fadd", "fsub", "fmul", "fdiv"):
        h = Handler(f"{name}.{kind}", xlen)
        value = h.val(f"{name} {real} {_number(h, RS1, kind)}, {_number(h, RS2, kind)}")
        yield _result(h, value, kind)
    h = Handler(f"fsqrt.{kind}", xlen)
    yield _result(h, h.call(real, f"llvm.sqrt.{suffix}", f"{real} {_number(h, RS1, kind)}"), kind)
    for name, (product, addend) in {
        "fmadd": ("", ""), "fmsub": ("", "-"), "fnmsub": ("-", ""), "fnmadd": ("-", "-"),
    }.items():  # fmt: skip
        h = Handler(f"{name}.{kind}", xlen)
        a, b, c = (_number(h, field, kind) for field in (RS1, RS2, RS3))
        a = h.val(f"fneg {real} {a}") if product else a
        c = h.val(f"fneg {real} {c}") if addend else c
        arguments = (f"{real} {a}", f"{real} {b}", f"{real} {c}")
        yield _result(h, h.call(real, f"llvm.fma.{suffix}", *arguments), kind)
    for name in ("fsgnj", "fsgnjn", "fsgnjx"):
        h = Handler(f"{name}.{kind}", xlen)
        a, b = _take(h, RS1, kind), _take(h, RS2, kind)
        sign = form.sign - (1 << form.bits)
        if name == "fsgnjn":
            b = h.val(f"xor {whole} {b}, -1")
        elif name == "fsgnjx":
            b = h.val(f"xor {whole} {a}, {b}")
        signs = h.val(f"and {whole} {b}, {sign}")
        rest = h.val(f"and {whole} {a}, {form.sign - 1}")
        _put(h, h.val(f"or {whole} {signs}, {rest}"), kind)
        yield h.next()


def _comparisons(kind: str, xlen: int) -> Iterator[str]:
    real, whole, suffix, form = _TYPES[kind]
    for name, condition in {"feq": "oeq", "flt": "olt", "fle": "ole"}.items():
        h = Handler(f"{name}.{kind}", xlen)
        bit = h.val(f"fcmp {condition} {real} {_number(h, RS1, kind)}, {_number(h, RS2, kind)}")
        h.set(h.val(f"zext i1 {bit} to {h.word}"))
        yield h.next()
    for name, condition, among_equals in (("fmin", "olt", "or"), ("fmax", "ogt", "and")):
        h = Handler(f"{name}.{kind}", xlen)
        x, y = _take(h, RS1, kind), _take(h, RS2, kind)
        a, b = (h.val(f"bitcast {whole} {bits} to {real}") for bits in (x, y))
        first = h.val(f"fcmp {condition} {real} {a}, {b}")
        equal = h.val(f"fcmp oeq {real} {a}, {b}")
        chosen = h.val(f"select i1 {first}, {whole} {x}, {whole} {y}")
        tie = h.val(f"{among_equals} {whole} {x}, {y}")
        chosen = h.val(f"select i1 {equal}, {whole} {tie}, {whole} {chosen}")
        for value, other in ((b, x), (a, y)):
            bad = h.val(f"fcmp uno {real} {value}, {value}")
            chosen = h.val(f"select i1 {bad}, {whole} {other}, {whole} {chosen}")
        yield _result(h, h.val(f"bitcast {whole} {chosen} to {real}"), kind)
    h = Handler(f"fclass.{kind}", xlen)
    value, mask = _number(h, RS1, kind), "0"
    for place, test in enumerate((0x4, 0x8, 0x10, 0x20, 0x40, 0x80, 0x100, 0x200, 0x1, 0x2)):
        is_it = h.call("i1", f"llvm.is.fpclass.{suffix}", f"{real} {value}", f"i32 {test}")
        mask = h.val(f"select i1 {is_it}, {h.word} {1 << place}, {h.word} {mask}")
    h.set(mask)
    yield h.next()
    assert form.bits == int(suffix[1:])


def _conversions(kind: str, xlen: int) -> Iterator[str]:
    real, _, suffix, _ = _TYPES[kind]
    for name in _INTEGERS if xlen == 64 else _INTEGERS[:2]:
        bits = 32 if "w" in name else 64
        integer, unsigned = f"i{bits}", name.endswith("u")
        highest = (1 << bits) - 1 if unsigned else (1 << bits - 1) - 1
        for mode, function in enumerate(ROUNDINGS):
            h = Handler(f"fcvt.{name}.{kind}/{mode}", xlen)
            value = _number(h, RS1, kind)
            rounded = h.call(real, f"llvm.{function}.{suffix}", f"{real} {value}")
            convert = f"llvm.fpto{'u' if unsigned else 's'}i.sat.{integer}.{suffix}"
            whole = h.call(integer, convert, f"{real} {rounded}")
            bad = h.val(f"fcmp uno {real} {value}, {value}")
            whole = h.val(f"select i1 {bad}, {integer} {highest}, {integer} {whole}")
            h.set(h.extend(whole, integer))
            yield h.next()
        h = Handler(f"fcvt.{kind}.{name}", xlen)
        how = "uitofp" if unsigned else "sitofp"
        yield _result(h, h.val(f"{how} {integer} {h.get(RS1, integer)} to {real}"), kind)


def _moves(xlen: int) -> Iterator[str]:
    h = Handler("fcvt.s.d", xlen)
    yield _result(h, h.val(f"fptrunc double {_number(h, RS1, 'd')} to float"), "s")
    h = Handler("fcvt.d.s", xlen)
    yield _result(h, h.val(f"fpext float {_number(h, RS1, 's')} to double"), "d")
    h = Handler("fmv.x.w", xlen)
    h.set(h.extend(h.get(RS1, "i32"), "i32"))
    yield h.next()
    h = Handler("fmv.w.x", xlen)
    _put(h, h.get(RS1, "i32"), "s")
    yield h.next()
    if xlen == 64:
        for name in ("fmv.x.d", "fmv.d.x"):
            h = Handler(name, xlen)
            h.set(h.get(RS1))
            yield h.next()
