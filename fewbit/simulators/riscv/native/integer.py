"""Handlers of integer instructions, of memory, and of MiCo's dot products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fewbit.llvm.types import I32, I64, Int, Vector
from fewbit.llvm.values import Value
from fewbit.riscv.instructions import DOT_WIDTHS
from fewbit.simulators.riscv.native.handler import RS1, RS2, Handler

_PLAIN: Mapping[str, Callable[[Value, Value], Value]] = {
    "add": Value.__add__,
    "sub": Value.__sub__,
    "xor": Value.__xor__,
    "or": Value.__or__,
    "and": Value.__and__,
    "mul": Value.__mul__,
}
_SHIFTS: Mapping[str, Callable[[Value, Value], Value]] = {
    "sll": Value.shift_left,
    "srl": Value.shift_right,
    "sra": Value.shift_right_signed,
}
_COMPARISONS = {"slt": "slt", "sltu": "ult"}
_BRANCHES = {"beq": "eq", "bne": "ne", "blt": "slt", "bge": "sge", "bltu": "ult", "bgeu": "uge"}
_DIVISIONS: Mapping[str, Callable[[Value, Value], Value]] = {
    "div": Value.signed_quotient,
    "divu": Value.__floordiv__,
    "rem": Value.signed_remainder,
    "remu": Value.__mod__,
}
_HIGH = {"mulh": ("sext", "sext"), "mulhsu": ("sext", "zext"), "mulhu": ("zext", "zext")}
_LOADS = {"b": 1, "h": 2, "w": 4, "d": 8}


def handlers(xlen: int) -> Iterator[Handler]:
    """Yield every handler of integers, by the names that `handler_name` gives."""
    yield from _arithmetic(xlen)
    yield from _memory(xlen)
    yield from _transfers(xlen)
    yield from (_dot(a, b, xlen) for a, b in DOT_WIDTHS)


def _arithmetic(xlen: int) -> Iterator[Handler]:
    h = Handler("li", xlen)
    h.set(h.imm())
    yield h.next()
    h = Handler("auipc", xlen)
    h.set(_pc(h) + h.imm(I64))
    yield h.next()
    yield Handler("fence", xlen).next()
    for name in (*_PLAIN, *_SHIFTS, *_COMPARISONS):
        for suffix in ("", "i") if name not in ("sub", "mul") else ("",):
            spelled = "sltiu" if name == "sltu" and suffix else name + suffix
            h = Handler(spelled, xlen)
            second = h.imm() if suffix else h.get(RS2)
            h.set(_binary(h, name, h.get(RS1), second))
            yield h.next()
            if xlen == 64 and name in ("add", "sub", "mul", *_SHIFTS):
                h = Handler(f"{name}{suffix}w", xlen)
                second = h.imm(I32) if suffix else h.get(RS2, I32)
                h.set(h.extend(_binary(h, name, h.get(RS1, I32), second)))
                yield h.next()
    for name in _HIGH:
        h = Handler(name, xlen)
        wide = Int(2 * xlen)
        a, b = (
            h.convert(how, h.get(field), wide)
            for how, field in zip(_HIGH[name], (RS1, RS2), strict=True)
        )
        h.set(h.convert("trunc", (a * b).shift_right(xlen), h.word))
        yield h.next()
    for name in _DIVISIONS:
        for kind, suffix in ((Int(xlen), ""), (I32, "w")):
            if suffix and xlen == 32:
                continue
            h = Handler(name + suffix, xlen)
            h.set(h.extend(_division(h, name, kind)))
            yield h.next()


def _binary(h: Handler, name: str, a: Value, b: Value) -> Value:
    if name in _PLAIN:
        return _PLAIN[name](a, b)
    assert isinstance(a.type, Int)
    if name in _SHIFTS:
        return _SHIFTS[name](a, b & (a.type.bits - 1))
    return h.convert("zext", a.compare(_COMPARISONS[name], b), a.type)


def _division(h: Handler, name: str, kind: Int) -> Value:
    a, b = h.get(RS1, kind), h.get(RS2, kind)
    zero = unsafe = b.equals(0)
    if not name.endswith("u"):
        unsafe = zero | (a.equals(-1 << kind.bits - 1) & b.equals(-1))
    divisor = h.select(unsafe, h.constant(kind, 1), b)
    result = _DIVISIONS[name](a, divisor)
    return h.select(zero, h.constant(kind, -1) if name.startswith("div") else a, result)


def _memory(xlen: int) -> Iterator[Handler]:
    for letter, size in _LOADS.items():
        kind = Int(8 * size)
        for suffix, how in (("", "sext"), ("u", "zext")):
            if 8 * size > xlen or (8 * size == xlen and suffix):
                continue
            h = Handler(f"l{letter}{suffix}", xlen)
            h.set(h.extend(h.load(kind, h.place(size)), how))
            yield h.next()
        if 8 * size <= xlen:
            h = Handler(f"s{letter}", xlen)
            at = h.place(size)
            h.store(h.get(RS2, kind), at)
            yield h.next()


def _transfers(xlen: int) -> Iterator[Handler]:
    for name, condition in _BRANCHES.items():
        h = Handler(name, xlen)
        h.go_on_unless(h.get(RS1).compare(condition, h.get(RS2)))
        yield h.jump(h.byte_at(h.record, h.imm(I64)))
    for links in (True, False):
        h = Handler("jal" if links else "j", xlen)
        target = h.byte_at(h.record, h.imm(I64))
        if links:
            _link(h)
        yield h.jump(target)
        h = Handler("jalr" if links else "jr", xlen)
        pc = h.extend_to_64((h.get(RS1) + h.imm()) & -2)
        inside = pc - h.context("code_low")
        h.need(inside.inside(h.context("code_bytes")))
        h.need((inside & 2).equals(0))
        if links:
            _link(h)
        records = h.pointer(h.context("records"))
        yield h.jump(h.byte_at(records, inside.shift_left(3)))


def _link(h: Handler) -> None:
    h.set(_pc(h) + 4)


def _pc(h: Handler) -> Value:
    distance = h.address(h.record) - h.context("records")
    return distance.shift_right(3) + h.context("code_low")


def _dot(a: int, b: int, xlen: int) -> Handler:
    h = Handler(f"dot{a}x{b}", xlen)
    first, second, count = h.get(RS1), h.get(RS2), xlen // a
    if a != b:
        offset = h.context("offset")
        places = offset if xlen == 64 else h.convert("trunc", offset, I32)
        second = second.shift_right(places)
        h.set_context("offset", (offset + xlen * b // a) & (xlen - 1))
    if a == b == 1:
        unlike = h.intrinsic(f"ctpop.{h.word}", h.word, first ^ second)
        h.set(h.constant(h.word, xlen) - unlike.shift_left(1))
        return h.next()
    x, w = (_elements(h, value, width, count) for value, width in ((first, a), (second, b)))
    h.set(h.extend(h.intrinsic(f"vector.reduce.add.v{count}i32", I32, x * w)))
    return h.next()


def _elements(h: Handler, word: Value, width: int, count: int) -> Value:
    """Return the lowest elements of a word, sign-extended to 32 bits by two shifts."""
    each = 32 // width
    pieces = h.bits(word, Vector(h.xlen // 32, I32))
    copies = h.shuffle(pieces, [i // each for i in range(count)])
    ups = h.constants(I32, [32 - width * (i % each + 1) for i in range(count)])
    value = copies.shift_left(ups).shift_right_signed(32 - width)
    return value if width > 1 else value | 1
