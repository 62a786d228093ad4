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

from fewbit.simulators.riscv.lines import LINE, SETS, WAYS
from fewbit.simulators.riscv.state import LOWEST

PARAMETERS = "ptr %record, ptr %regs, ptr %mem, ptr %start, i64 %left, ptr %ctx"
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
        ("space", ctypes.c_uint64 * 4),
        ("lines", ctypes.c_uint64 * (SETS * WAYS)),
        ("misses", ctypes.c_uint64 * WAYS),
    )


def context_offset(name: str) -> int:
    return getattr(Context, name).offset


class Handler:
    """The text of one handler, in LLVM's language."""

    def __init__(self, name: str, xlen: int) -> None:
        self.name = name
        self.xlen = xlen
        self.word = f"i{xlen}"
        self._lines: list[str] = []
        self._values = 0

    def __str__(self) -> str:
        body = "\n".join(f"  {line}" for line in self._lines)
        return f'define internal void @"{self.name}"({PARAMETERS}) nounwind {{\n{body}\n}}\n'

    def do(self, text: str) -> None:
        """A line without a value."""
        self._lines.append(text)

    def val(self, text: str) -> str:
        """A line with a value; its name."""
        self._values += 1
        self._lines.append(f"%v{self._values} = {text}")
        return f"%v{self._values}"

    def at(self, base: str, offset: int | str) -> str:
        """An address so many bytes behind another."""
        return self.val(f"getelementptr i8, ptr {base}, i64 {offset}")

    def imm(self, kind: str | None = None) -> str:
        """The immediate, extended to the word or to `kind`."""
        kind = kind or self.word
        value = self.val(f"load i32, ptr {self.at('%record', IMM)}")
        return value if kind == "i32" else self.val(f"sext i32 {value} to {kind}")

    def _slot(self, field: int) -> str:
        number = self.val(f"load i8, ptr {self.at('%record', field)}")
        wide = self.val(f"zext i8 {number} to i64")
        return self.val(f"getelementptr i64, ptr %regs, i64 {wide}")

    def get(self, field: int, kind: str | None = None) -> str:
        """The register that a field of the record names."""
        return self.val(f"load {kind or self.word}, ptr {self._slot(field)}")

    def set(self, value: str, kind: str | None = None) -> None:
        """Put a result into rd; one of 32 bits with zeros before it."""
        kind = kind or self.word
        if kind != "i64":
            value = self.val(f"zext {kind} {value} to i64")
        self.do(f"store i64 {value}, ptr {self._slot(RD)}")

    def extend(self, value: str, kind: str, how: str = "sext") -> str:
        """A smaller number as a word."""
        return value if kind == self.word else self.val(f"{how} {kind} {value} to {self.word}")

    def call(self, kind: str, name: str, *arguments: str) -> str:
        return self.val(f"call {kind} @{name}({', '.join(arguments)})")

    def field(self, name: str) -> str:
        """A number of the context."""
        return self.val(f"load i64, ptr {self.at('%ctx', getattr(Context, name).offset)}")

    def set_field(self, name: str, value: str) -> None:
        self.do(f"store i64 {value}, ptr {self.at('%ctx', getattr(Context, name).offset)}")

    def next(self) -> str:
        """Go on with the next record; the text, to return from writers."""
        self._dispatch(self.at("%record", RECORD_BYTES), "%start", "%left")
        return str(self)

    def need(self, condition: str) -> None:
        """Leave the instruction to Python unless the condition holds."""
        self._values += 1
        here = self._values
        self.do(f"br i1 {condition}, label %on{here}, label %off{here}, !prof !0")
        self._lines.append(f"off{here}:")
        self._leave("slow", "%record", "%start", "%left")
        self._lines.append(f"on{here}:")

    def if_(self, condition: str) -> None:
        """Go on with the next record unless the condition holds."""
        self._values += 1
        here = self._values
        self.do(f"br i1 {condition}, label %on{here}, label %off{here}")
        self._lines.append(f"off{here}:")
        self._dispatch(self.at("%record", RECORD_BYTES), "%start", "%left")
        self._lines.append(f"on{here}:")

    def jump(self, target: str) -> str:
        """Go on with another record, and note where from and where to."""
        behind = self.at("%record", RECORD_BYTES)
        self._count(self.at(behind, JUMPS))
        self._count(self.at(target, STARTS))
        end, start = (self.val(f"ptrtoint ptr {p} to i64") for p in (behind, "%start"))
        length = self.val(f"sub i64 {end}, {start}")
        left = self.val(f"sub i64 %left, {length}")
        enough = self.val(f"icmp sge i64 {left}, 0")
        self.do(f"br i1 {enough}, label %enough, label %over, !prof !0")
        self._lines.append("over:")
        self._leave("slow", target, target, left)
        self._lines.append("enough:")
        self._dispatch(target, target, left)
        return str(self)

    def address(self, size: int) -> str:
        """The address rs1 + imm, checked: in memory, and a multiple of the size.

        Rotating moves the bits that must be zero to the top, where they make the number too large.
        """
        address = self.val(f"add {self.word} {self.get(RS1)}, {self.imm()}")
        inside = self.val(f"sub {self.word} {address}, {LOWEST}")
        places = size.bit_length() - 1
        if places:
            kind = self.word
            inside = self.call(
                kind,
                f"llvm.fshr.{kind}",
                f"{kind} {inside}",
                f"{kind} {inside}",
                f"{kind} {places}",
            )
        wide = self.extend_to_64(inside)
        space = self.val(f"load i64, ptr {self.at('%ctx', context_offset('space') + 8 * places)}")
        self.need(self.val(f"icmp ult i64 {wide}, {space}"))
        place = self.extend_to_64(address)
        self.do(f"call void @touch(i64 {place}, ptr %ctx)")
        return self.at("%mem", place)

    def extend_to_64(self, value: str) -> str:
        return value if self.xlen == 64 else self.val(f"zext i32 {value} to i64")

    def _count(self, place: str) -> None:
        count = self.val(f"load i64, ptr {place}")
        self.do(f"store i64 {self.val(f'add i64 {count}, 1')}, ptr {place}")

    def _dispatch(self, record: str, start: str, left: str) -> None:
        self._leave(self.val(f"load ptr, ptr {record}"), record, start, left)

    def _leave(self, to: str, record: str, start: str, left: str) -> None:
        function = to if to.startswith("%") else f"@{to}"
        self.do(
            f"musttail call void {function}(ptr {record}, ptr %regs, ptr %mem, ptr {start}, "
            f"i64 {left}, ptr %ctx)"
        )
        self.do("ret void")


def touch_ir(counted: bool) -> str:
    """What every access of memory calls: nothing, or `RecentLines.touch` of two ways."""
    head = "define internal void @touch(i64 %address, ptr %ctx) alwaysinline nounwind {"
    if not counted:
        return f"{head}\n  ret void\n}}\n"
    assert WAYS == 2
    return f"""{head}
  %line = lshr i64 %address, {LINE.bit_length() - 1}
  %set = and i64 %line, {SETS - 1}
  %entry = mul i64 %set, {8 * WAYS}
  %offset = add i64 %entry, {context_offset("lines")}
  %first = getelementptr i8, ptr %ctx, i64 %offset
  %latest = load i64, ptr %first
  %same = icmp eq i64 %latest, %line
  br i1 %same, label %done, label %other
other:
  call void @miss(i64 %line, i64 %latest, ptr %first, ptr %ctx)
  br label %done
done:
  ret void
}}

define internal void @miss(i64 %line, i64 %latest, ptr %first, ptr %ctx) noinline nounwind {{
  %one = getelementptr i8, ptr %ctx, i64 {context_offset("misses")}
  %ones = load i64, ptr %one
  %ones1 = add i64 %ones, 1
  store i64 %ones1, ptr %one
  %second = getelementptr i8, ptr %first, i64 8
  %earlier = load i64, ptr %second
  store i64 %latest, ptr %second
  store i64 %line, ptr %first
  %found = icmp eq i64 %earlier, %line
  %more = select i1 %found, i64 0, i64 1
  %two = getelementptr i8, ptr %one, i64 8
  %twos = load i64, ptr %two
  %twos1 = add i64 %twos, %more
  store i64 %twos1, ptr %two
  ret void
}}
"""
