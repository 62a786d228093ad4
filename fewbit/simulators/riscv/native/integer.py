"""Handlers of integer instructions, of memory, and of MiCo's dot products."""

from __future__ import annotations

from collections.abc import Iterator

from fewbit.riscv.instructions import DOT_WIDTHS
from fewbit.simulators.riscv.native.handler import RS1, RS2, Handler

_PLAIN = {"add": "add", "sub": "sub", "xor": "xor", "or": "or", "and": "and", "mul": "mul"}
_SHIFTS = {"sll": "shl", "srl": "lshr", "sra": "ashr"}
_COMPARISONS = {"slt": "slt", "sltu": "ult"}
_BRANCHES = {"beq": "eq", "bne": "ne", "blt": "slt", "bge": "sge", "bltu": "ult", "bgeu": "uge"}
_DIVISIONS = {"div": "sdiv", "divu": "udiv", "rem": "srem", "remu": "urem"}
_HIGH = {"mulh": ("sext", "sext"), "mulhsu": ("sext", "zext"), "mulhu": ("zext", "zext")}
_LOADS = {"b": 1, "h": 2, "w": 4, "d": 8}


def handlers(xlen: int) -> Iterator[str]:
    """Every handler of integers, by the names that `handler_name` gives."""
    yield from _arithmetic(xlen)
    yield from _memory(xlen)
    yield from _transfers(xlen)
    yield from (_dot(a, b, xlen) for a, b in DOT_WIDTHS)


def _arithmetic(xlen: int) -> Iterator[str]:
    h = Handler("li", xlen)
    h.set(h.imm())
    yield h.next()
    yield Handler("fence", xlen).next()
    for name in (*_PLAIN, *_SHIFTS, *_COMPARISONS):
        for suffix in ("", "i") if name not in ("sub", "mul") else ("",):
            spelled = "sltiu" if name == "sltu" and suffix else name + suffix
            h = Handler(spelled, xlen)
            second = h.imm() if suffix else h.get(RS2)
            h.set(_binary(h, name, h.get(RS1), second, h.word))
            yield h.next()
            if xlen == 64 and name in ("add", "sub", "mul", *_SHIFTS):
                h = Handler(f"{name}{suffix}w", xlen)
                second = h.imm("i32") if suffix else h.get(RS2, "i32")
                h.set(h.extend(_binary(h, name, h.get(RS1, "i32"), second, "i32"), "i32"))
                yield h.next()
    for name in _HIGH:
        h = Handler(name, xlen)
        wide = f"i{2 * xlen}"
        factors = (
            h.val(f"{how} {h.word} {h.get(field)} to {wide}")
            for how, field in zip(_HIGH[name], (RS1, RS2), strict=True)
        )
        product = h.val(f"mul {wide} {', '.join(factors)}")
        upper = h.val(f"lshr {wide} {product}, {xlen}")
        h.set(h.val(f"trunc {wide} {upper} to {h.word}"))
        yield h.next()
    for name in _DIVISIONS:
        for kind, suffix in ((f"i{xlen}", ""), ("i32", "w")):
            if suffix and xlen == 32:
                continue
            h = Handler(name + suffix, xlen)
            h.set(h.extend(_division(h, name, kind), kind))
            yield h.next()


def _binary(h: Handler, name: str, a: str, b: str, kind: str) -> str:
    if name in _PLAIN:
        return h.val(f"{_PLAIN[name]} {kind} {a}, {b}")
    if name in _SHIFTS:
        places = h.val(f"and {kind} {b}, {int(kind[1:]) - 1}")
        return h.val(f"{_SHIFTS[name]} {kind} {a}, {places}")
    bit = h.val(f"icmp {_COMPARISONS[name]} {kind} {a}, {b}")
    return h.val(f"zext i1 {bit} to {kind}")


def _division(h: Handler, name: str, kind: str) -> str:
    a, b = h.get(RS1, kind), h.get(RS2, kind)
    zero = unsafe = h.val(f"icmp eq {kind} {b}, 0")
    if not name.endswith("u"):
        least = h.val(f"icmp eq {kind} {a}, {-1 << int(kind[1:]) - 1}")
        minus = h.val(f"icmp eq {kind} {b}, -1")
        unsafe = h.val(f"or i1 {zero}, {h.val(f'and i1 {least}, {minus}')}")
    divisor = h.val(f"select i1 {unsafe}, {kind} 1, {kind} {b}")
    result = h.val(f"{_DIVISIONS[name]} {kind} {a}, {divisor}")
    by_zero = "-1" if name.startswith("div") else a
    return h.val(f"select i1 {zero}, {kind} {by_zero}, {kind} {result}")


def _memory(xlen: int) -> Iterator[str]:
    for letter, size in _LOADS.items():
        kind = f"i{8 * size}"
        for suffix, how in (("", "sext"), ("u", "zext")):
            if 8 * size > xlen or (8 * size == xlen and suffix):
                continue
            h = Handler(f"l{letter}{suffix}", xlen)
            h.set(h.extend(h.val(f"load {kind}, ptr {h.address(size)}"), kind, how))
            yield h.next()
        if 8 * size <= xlen:
            h = Handler(f"s{letter}", xlen)
            at = h.address(size)
            h.do(f"store {kind} {h.get(RS2, kind)}, ptr {at}")
            yield h.next()


def _transfers(xlen: int) -> Iterator[str]:
    for name, condition in _BRANCHES.items():
        h = Handler(name, xlen)
        h.if_(h.val(f"icmp {condition} {h.word} {h.get(RS1)}, {h.get(RS2)}"))
        yield h.jump(h.at("%record", h.imm("i64")))
    for links in (True, False):
        h = Handler("jal" if links else "j", xlen)
        target = h.at("%record", h.imm("i64"))
        if links:
            _link(h)
        yield h.jump(target)
        h = Handler("jalr" if links else "jr", xlen)
        sum_ = h.val(f"add {h.word} {h.get(RS1)}, {h.imm()}")
        pc = h.extend_to_64(h.val(f"and {h.word} {sum_}, -2"))
        inside = h.val(f"sub i64 {pc}, {h.field('code_low')}")
        h.need(h.val(f"icmp ult i64 {inside}, {h.field('code_bytes')}"))
        odd = h.val(f"and i64 {inside}, 2")
        h.need(h.val(f"icmp eq i64 {odd}, 0"))
        if links:
            _link(h)
        records = h.val(f"inttoptr i64 {h.field('records')} to ptr")
        yield h.jump(h.at(records, h.val(f"shl i64 {inside}, 3")))


def _link(h: Handler) -> None:
    here = h.val("ptrtoint ptr %record to i64")
    distance = h.val(f"sub i64 {here}, {h.field('records')}")
    inside = h.val(f"lshr i64 {distance}, 3")
    pc = h.val(f"add i64 {inside}, {h.field('code_low')}")
    h.set(h.val(f"add i64 {pc}, 4"), "i64")


def _dot(a: int, b: int, xlen: int) -> str:
    h = Handler(f"dot{a}x{b}", xlen)
    first, second, count = h.get(RS1), h.get(RS2), xlen // a
    if a != b:
        offset = h.field("offset")
        places = offset if xlen == 64 else h.val(f"trunc i64 {offset} to i32")
        second = h.val(f"lshr {h.word} {second}, {places}")
        moved = h.val(f"add i64 {offset}, {xlen * b // a}")
        h.set_field("offset", h.val(f"and i64 {moved}, {xlen - 1}"))
    if a == b == 1:
        differing = h.val(f"xor {h.word} {first}, {second}")
        unlike = h.call(h.word, f"llvm.ctpop.{h.word}", f"{h.word} {differing}")
        h.set(h.val(f"sub {h.word} {xlen}, {h.val(f'shl {h.word} {unlike}, 1')}"))
        return h.next()
    kind = f"<{count} x i32>"
    factors = (_elements(h, value, width, count) for value, width in ((first, a), (second, b)))
    products = h.val(f"mul {kind} {', '.join(factors)}")
    total = h.call("i32", f"llvm.vector.reduce.add.v{count}i32", f"{kind} {products}")
    h.set(h.extend(total, "i32"))
    return h.next()


def _elements(h: Handler, word: str, width: int, count: int) -> str:
    """The lowest elements of a word, each in 32 bits: moved to the top, then back with the sign."""
    each = 32 // width
    kind = f"<{count} x i32>"
    parts = h.xlen // 32
    pieces = h.val(f"bitcast {h.word} {word} to <{parts} x i32>")
    spread = ", ".join(f"i32 {i // each}" for i in range(count))
    copies = h.val(
        f"shufflevector <{parts} x i32> {pieces}, <{parts} x i32> poison, {kind} <{spread}>"
    )
    ups = ", ".join(f"i32 {32 - width * (i % each + 1)}" for i in range(count))
    top = h.val(f"shl {kind} {copies}, <{ups}>")
    value = h.val(f"ashr {kind} {top}, splat (i32 {32 - width})")
    if width > 1:
        return value
    return h.val(f"or {kind} {value}, splat (i32 1)")
