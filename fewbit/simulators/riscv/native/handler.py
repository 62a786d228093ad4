"""Writes one handler: the machine code that does one kind of instruction.

A program becomes an array of records, one for each instruction, and each record begins with the
address of its handler. A handler does its work and jumps straight to the handler of the next
record (a tail call that cannot fail to be one), so that there is no loop and no decoding, and what
is needed all the time stays in registers of the processor:

    record   the present record
    regs     the simulated registers
    mem      the simulated memory
    start    the record with which the present run of instructions began
    left     how many instructions may still be executed, times the size of a record
    ctx      what is needed less often (`Context`)

Nothing is counted but taken jumps: both ends are noted in the records, and the rest follows.
What a handler cannot or must not do it leaves to Python, by jumping to `slow`.
"""

from __future__ import annotations

import ctypes

from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I8, I32, I64, PTR, Int
from fewbit.llvm.values import Operand, Value
from fewbit.simulators.riscv.lines import LINE, SETS, WAYS

PARAMETERS = "ptr record, ptr regs, ptr mem, ptr start, i64 left, ptr ctx"
RECORD_BYTES = 32
HANDLER, IMM, RD, RS1, RS2, RS3, STARTS, JUMPS = 0, 8, 12, 13, 14, 15, 16, 24


class Context(ctypes.Structure):
    """What handlers find behind `ctx`."""

    record: int
    start: int
    left: int
    records: int
    code_low: int
    code_bytes: int
    offset: int
    lowest: int
    space: list[int]
    lines: list[int]
    misses: list[int]

    _fields_ = (
        ("record", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("left", ctypes.c_int64),
        ("records", ctypes.c_uint64),
        ("code_low", ctypes.c_uint64),
        ("code_bytes", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("lowest", ctypes.c_uint64),
        ("space", ctypes.c_uint64 * 4),
        ("lines", ctypes.c_uint64 * (SETS * WAYS)),
        ("misses", ctypes.c_uint64 * WAYS),
    )


def context_offset(name: str) -> int:
    return getattr(Context, name).offset


class Handler(Function):
    """One handler."""

    def __init__(self, name: str, xlen: int) -> None:
        super().__init__(name, PARAMETERS, linkage="internal", attributes="nounwind")
        self.xlen = xlen
        self.word = Int(xlen)
        self.record, self.regs, self.mem, self.start, self.left, self.ctx = self.parameters

    def byte_at(self, base: Value, offset: Operand) -> Value:
        """Return an address so many bytes behind another."""
        return self.at(base, offset, I8)

    def imm(self, kind: Int | None = None) -> Value:
        """Return the immediate, extended to the word or to `kind`."""
        kind = kind or self.word
        value = self.load(I32, self.byte_at(self.record, IMM))
        return value if kind == I32 else self.convert("sext", value, kind)

    def _slot(self, field: int) -> Value:
        number = self.load(I8, self.byte_at(self.record, field))
        return self.at(self.regs, self.convert("zext", number, I64), I64)

    def get(self, field: int, kind: Int | None = None) -> Value:
        """Return the register that a field of the record names."""
        return self.load(kind or self.word, self._slot(field))

    def set(self, value: Value) -> None:
        """Put a result into rd; one of 32 bits with zeros before it."""
        if value.type != I64:
            value = self.convert("zext", value, I64)
        self.store(value, self._slot(RD))

    def extend(self, value: Value, how: str = "sext") -> Value:
        """Return a smaller number as a word."""
        return value if value.type == self.word else self.convert(how, value, self.word)

    def context(self, name: str) -> Value:
        """Return a number of the context."""
        return self.load(I64, self.byte_at(self.ctx, context_offset(name)))

    def set_context(self, name: str, value: Value) -> None:
        self.store(value, self.byte_at(self.ctx, context_offset(name)))

    def next(self) -> Handler:
        """Go on with the next record, and return the handler."""
        self._dispatch(self.byte_at(self.record, RECORD_BYTES), self.start, self.left)
        return self

    def need(self, condition: Value) -> None:
        """Leave the instruction to Python unless the condition holds."""
        with self.unless(condition, rarely=True):
            self._leave_to(SLOW, self.record, self.start, self.left)

    def go_on_unless(self, condition: Value) -> None:
        """Go on with the next record unless the condition holds."""
        with self.unless(condition):
            self.next()

    def jump(self, target: Value) -> Handler:
        """Go on with another record, and note where from and where to."""
        behind = self.byte_at(self.record, RECORD_BYTES)
        self._count_one(self.byte_at(behind, JUMPS))
        self._count_one(self.byte_at(target, STARTS))
        left = self.left - (self.address(behind) - self.address(self.start))
        with self.unless(left >= 0, rarely=True):
            self._leave_to(SLOW, target, target, left)
        self._dispatch(target, target, left)
        return self

    def place(self, size: int) -> Value:
        """Return the address rs1 + imm, checked: in memory, and a multiple of the size.

        Rotating moves the bits that must be zero to the top, where they make the number too large.
        """
        address = self.get(RS1) + self.imm()
        inside = address - self.load(self.word, self.byte_at(self.ctx, context_offset("lowest")))
        places = size.bit_length() - 1
        if places:
            by = self.constant(self.word, places)
            inside = self.intrinsic(f"fshr.{self.word}", self.word, inside, inside, by)
        space = self.byte_at(self.ctx, context_offset("space") + 8 * places)
        self.need(self.extend_to_64(inside).inside(self.load(I64, space)))
        wide = self.extend_to_64(address)
        self.call(TOUCH, wide, self.ctx)
        return self.byte_at(self.mem, wide)

    def extend_to_64(self, value: Value) -> Value:
        return value if self.xlen == 64 else self.convert("zext", value, I64)

    def _count_one(self, place: Value) -> None:
        self.store(self.load(I64, place) + 1, place)

    def _dispatch(self, record: Value, start: Value, left: Value) -> None:
        self._leave_to(self.load(PTR, record), record, start, left)

    def _leave_to(self, to: Prototype | Value, record: Value, start: Value, left: Value) -> None:
        self.leave(to, record, self.regs, self.mem, start, left, self.ctx)


SLOW = Handler("slow", 64).prototype
TOUCH = Prototype.of("touch", "void", "i64", "ptr")


def touch_ir(counted: bool) -> str:
    """Return what every access of memory calls: nothing, or `RecentLines.touch` of two ways."""
    touch = Function(
        TOUCH.name, "i64 address, ptr ctx", linkage="internal", attributes="alwaysinline nounwind"
    )
    if not counted:
        touch.ret()
        return touch.text()
    assert WAYS == 2
    miss = _miss()
    address, ctx = touch.parameters
    line = address.shift_right(LINE.bit_length() - 1)
    offset = (line & (SETS - 1)) * (8 * WAYS) + context_offset("lines")
    first = touch.at(ctx, offset, I8)
    latest = touch.load(I64, first)
    with touch.when(latest.differs(line)):
        touch.call(miss, line, latest, first, ctx)
    touch.ret()
    return "\n".join((touch.text(), miss.text()))


def _miss() -> Function:
    """Return a line that was not the latest of its set."""
    f = Function(
        "miss",
        "i64 line, i64 latest, ptr first, ptr ctx",
        linkage="internal",
        attributes="noinline nounwind",
    )
    line, latest, first, ctx = f.parameters
    one = f.at(ctx, context_offset("misses"), I8)
    f.store(f.load(I64, one) + 1, one)
    second = f.at(first, 8, I8)
    earlier = f.load(I64, second)
    f.store(latest, second)
    f.store(line, first)
    more = f.select(earlier.equals(line), 0, 1)
    two = f.at(one, 8, I8)
    f.store(f.load(I64, two) + more, two)
    f.ret()
    return f
