"""LLVM IR as text, written so that a kernel reads as the loops that it is.

A `Value` is a typed name; arithmetic on values writes instructions. Loops and conditions are
`with` blocks. Everything is in SSA form from the start, with what a loop changes as its carried
values: no optimizer is needed to keep an accumulator in a register.

    with f.loop(0, count, carried=[zero]) as loop:
        (total,) = loop.carried
        loop.carry(total + f.load("i64", table, loop.index))
    (total,) = loop.results
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fewbit.toolchain.isa import Isa

ZEROS = "fewbit_zeros"
"""A row of zeros, as long as one block of a sum: what is absent or outside an image."""
MOST_DEPTH = 4096
"""Bytes of it that one tap of a sum of integers may read."""


@dataclass(frozen=True, eq=False)
class Value:
    """A name in a function, with its type. Python integers stand for constants beside it."""

    function: Function
    type: str
    text: str

    def __str__(self) -> str:
        return self.text

    def _binary(self, name: str, other: Value | int) -> Value:
        kind = f"f{name}" if "float" in self.type or "double" in self.type else name
        return self.function.set(self.type, f"{kind} {self.type} {self}, {other}")

    def __add__(self, other: Value | int) -> Value:
        return self._binary("add", other)

    def __sub__(self, other: Value | int) -> Value:
        return self._binary("sub", other)

    def __mul__(self, other: Value | int) -> Value:
        return self._binary("mul", other)

    def __floordiv__(self, other: Value | int) -> Value:
        return self.function.set(self.type, f"udiv {self.type} {self}, {other}")

    def __mod__(self, other: Value | int) -> Value:
        return self.function.set(self.type, f"urem {self.type} {self}, {other}")

    def __and__(self, other: Value) -> Value:
        return self.function.set(self.type, f"and {self.type} {self}, {other}")

    def __xor__(self, other: Value) -> Value:
        return self.function.set(self.type, f"xor {self.type} {self}, {other}")

    def __or__(self, other: Value) -> Value:
        return self.function.set(self.type, f"or {self.type} {self}, {other}")

    def _compare(self, predicate: str, other: Value | int) -> Value:
        result = "i1" if self.type[0] != "<" else f"{self.type.split(' x ')[0]} x i1>"
        return self.function.set(result, f"icmp {predicate} {self.type} {self}, {other}")

    def __lt__(self, other: Value | int) -> Value:
        return self._compare("slt", other)

    def __le__(self, other: Value | int) -> Value:
        return self._compare("sle", other)

    def __gt__(self, other: Value | int) -> Value:
        return self._compare("sgt", other)

    def __ge__(self, other: Value | int) -> Value:
        return self._compare("sge", other)

    def equals(self, other: Value | int) -> Value:
        return self._compare("eq", other)

    def differs(self, other: Value | int) -> Value:
        return self._compare("ne", other)

    def inside(self, size: Value | int) -> Value:
        """0 <= self < size, in one unsigned comparison."""
        return self._compare("ult", other=size)

    def is_null(self) -> Value:
        return self.function.set("i1", f"icmp eq ptr {self}, null")


@dataclass
class Loop:
    """An open loop: the `index`, the values `carried` into this round, and `results` after it.

    The body may set the `step` to the next index.
    """

    index: Value
    carried: list[Value]
    step: Value | int
    following: list[Value]
    results: list[Value]

    def carry(self, *values: Value) -> None:
        """What the next round starts with."""
        self.following = list(values)


class Function:
    """One LLVM function under construction, its parameters as in "ptr x, i64 count".

    `needs` are the functions that it calls. One that stands `apart` calls none, and may be
    compiled once for all programs.
    """

    def __init__(
        self, isa: Isa, name: str, parameters: str, *, public: bool = False, apart: bool = False
    ) -> None:
        self.isa = isa
        self.name = name
        self.public = public
        self.apart = apart
        self.parameters = [
            Value(self, type, f"%{name}")
            for type, name in (parameter.split() for parameter in parameters.split(","))
        ]
        self.needs: list[Function] = []
        self.intrinsics: set[str] = set()
        self._lines: list[str] = []
        self._block = "entry"
        self._count = 0

    # Text

    def text(self) -> str:
        """The definition."""
        return self.definition(self.name, "" if self.public else "internal")

    def declaration(self) -> str:
        """The line by which another module may call it."""
        types = ", ".join(parameter.type for parameter in self.parameters)
        return f"declare void @{self.name}({types})"

    def definition(self, name: str, linkage: str) -> str:
        parameters = ", ".join(
            f"{v.type}{' nocapture' if v.type == 'ptr' else ''} {v}" for v in self.parameters
        )
        head = f"define {linkage} void @{name}({parameters})"
        body = "\n".join(f"  {line}" if line[-1:] != ":" else line for line in self._lines)
        return f"{head} nounwind noinline {{\nentry:\n{body}\n  ret void\n}}\n"

    def write(self, line: str) -> None:
        self._lines.append(line)

    def set(self, type: str, expression: str) -> Value:
        """Name the result of an instruction."""
        self._count += 1
        value = Value(self, type, f"%v{self._count}")
        self.write(f"{value} = {expression}")
        return value

    # Constants and memory

    def integer(self, value: int | Value) -> Value:
        return value if isinstance(value, Value) else Value(self, "i64", str(value))

    def zero(self, type: str) -> Value:
        return Value(self, type, "zeroinitializer")

    def number(self, value: float) -> Value:
        return Value(self, "float", f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")

    def at(self, pointer: Value, index: Value | int, type: str = "float") -> Value:
        """The address of an element."""
        return self.set("ptr", f"getelementptr {type}, ptr {pointer}, i64 {index}")

    def load(self, type: str, pointer: Value, index: Value | int = 0) -> Value:
        return self.set(
            type, f"load {type}, ptr {self.at(pointer, index, type)}, align {_align(type)}"
        )

    def store(self, value: Value, pointer: Value, index: Value | int = 0) -> None:
        place = self.at(pointer, index, value.type)
        self.write(f"store {value.type} {value}, ptr {place}, align {_align(value.type)}")

    def prefetch(self, pointer: Value) -> None:
        """Ask for a line of the cache, into the second level."""
        self.intrinsics.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.write(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 2, i32 1)")

    def array(self, type: str, count: int) -> Value:
        """Room on the stack."""
        return self.set("ptr", f"alloca [{count} x {type}], align 64")

    def zeros(self) -> Value:
        return Value(self, "ptr", f"@{ZEROS}")

    def address(self, pointer: Value) -> Value:
        """A pointer as a number."""
        return self.set("i64", f"ptrtoint ptr {pointer} to i64")

    def pointer(self, address: Value) -> Value:
        return self.set("ptr", f"inttoptr i64 {address} to ptr")

    # Choices

    def select(self, condition: Value, yes: Value | int, no: Value | int) -> Value:
        yes, no = self.integer(yes), self.integer(no)
        choice = f"{condition.type} {condition}"
        return self.set(yes.type, f"select {choice}, {yes.type} {yes}, {no.type} {no}")

    def smaller(self, a: Value | int, b: Value | int) -> Value:
        a = self.integer(a)
        return self.select(a < b, a, b)

    def larger(self, a: Value | int, b: Value | int) -> Value:
        a = self.integer(a)
        return self.select(a > b, a, b)

    def ceiling(self, a: Value, b: Value | int) -> Value:
        """a / b, rounded up."""
        return (a + (self.integer(b) - 1)) // b

    def call(self, callee: Function, *arguments: Value | int) -> None:
        if callee not in self.needs:
            self.needs.append(callee)
        given = [self.integer(a) for a in arguments]
        self.write(f"call void @{callee.name}({', '.join(f'{a.type} {a}' for a in given)})")

    # Control

    def _label(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _begin(self, label: str) -> None:
        self.write(f"{label}:")
        self._block = label

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """Do the body if the condition holds."""
        body, end = self._label("then"), self._label("end")
        self.write(f"br i1 {condition}, label %{body}, label %{end}")
        self._begin(body)
        yield
        self.write(f"br label %{end}")
        self._begin(end)

    def switch(
        self, value: Value, cases: Sequence[tuple[int, Function]], *arguments: Value
    ) -> None:
        """Call the function that stands beside the value, if one does."""
        labels = [self._label("case") for _ in cases]
        end = self._label("end")
        table = " ".join(
            f"i64 {n}, label %{label}" for (n, _), label in zip(cases, labels, strict=True)
        )
        self.write(f"switch i64 {value}, label %{end} [{table}]")
        for label, (_, callee) in zip(labels, cases, strict=True):
            self._begin(label)
            self.call(callee, *arguments)
            self.write(f"br label %{end}")
        self._begin(end)

    @contextmanager
    def loop(
        self,
        start: Value | int,
        stop: Value | int,
        step: Value | int = 1,
        *,
        carried: Sequence[Value] = (),
        hot: bool = False,
    ) -> Generator[Loop]:
        """Count from start up to stop. A hot loop tests at its end: it runs at least once."""
        body, end = self._label("loop"), self._label("end")
        before, head = self._block, self._label("test")
        first = body if hot else head
        self.write(f"br label %{first}")
        self._begin(first)
        starts = [self.integer(start), *carried]
        place = len(self._lines)
        phis = [self.set(v.type, "phi") for v in starts]
        if not hot:
            self.write(f"br i1 {phis[0] < stop}, label %{body}, label %{end}")
            self._begin(body)
        loop = Loop(phis[0], phis[1:], step, [], phis[1:])
        yield loop
        following = [phis[0] + loop.step, *loop.following]
        latch = self._block
        if hot:
            self.write(f"br i1 {following[0] < stop}, label %{body}, label %{end}")
            loop.results = loop.following
        else:
            self.write(f"br label %{head}")
        self._begin(end)
        for i, (phi, value, later) in enumerate(zip(phis, starts, following, strict=True)):
            incoming = f"[{value}, %{before}], [{later}, %{latch}]"
            self._lines[place + i] = f"{phi} = phi {phi.type} {incoming}"

    # Vectors

    @property
    def vector(self) -> str:
        return f"<{self.isa.lanes} x float>"

    def broadcast(self, scalar: Value, lanes: int | None = None) -> Value:
        """A vector of one number, as long as a register unless `lanes` says otherwise."""
        lanes = lanes or self.isa.lanes
        kind = f"<{lanes} x {scalar.type}>"
        one = self.set(kind, f"insertelement {kind} poison, {scalar.type} {scalar}, i64 0")
        zero = f"<{lanes} x i32> zeroinitializer"
        return self.set(kind, f"shufflevector {kind} {one}, {kind} poison, {zero}")

    def multiply_add(self, a: Value, b: Value, total: Value) -> Value:
        """a · b + total, rounded once where the processor can."""
        if not self.isa.fma:
            return a * b + total
        return self.set(
            self.vector, self._intrinsic("fma", self.vector, (a, b, total), self.vector)
        )

    def clamp(self, value: Value, low: Value, high: Value) -> Value:
        """Between low and high, vectors all three. What is not a number stays so."""
        for bound, predicate in ((low, "ogt"), (high, "olt")):
            kind = f"<{self.isa.lanes} x i1>"
            beyond = self.set(kind, f"fcmp {predicate} {self.vector} {bound}, {value}")
            value = self.select(beyond, bound, value)
        return value

    def at_most(self, value: Value, high: Value) -> Value:
        """The smaller of two vectors."""
        beyond = self.set(f"<{self.isa.lanes} x i1>", f"fcmp olt {self.vector} {high}, {value}")
        return self.select(beyond, high, value)

    def transpose(self, rows: Sequence[Value]) -> list[Value]:
        """As many vectors as each has lanes, rows to columns: halves are interleaved, again and
        again, until each lane has come home.
        """
        done, half = list(rows), len(rows) // 2
        for _ in range(half.bit_length()):
            done = [
                self._interleave(done[i // 2], done[i // 2 + half], high=i % 2 == 1)
                for i in range(len(rows))
            ]
        return done

    def _interleave(self, a: Value, b: Value, *, high: bool) -> Value:
        lanes = self.isa.lanes
        start = lanes // 2 if high else 0
        order = (i for at in range(start, start + lanes // 2) for i in (at, at + lanes))
        indices = ", ".join(f"i32 {i}" for i in order)
        return self.set(
            a.type, f"shufflevector {a.type} {a}, {a.type} {b}, <{lanes} x i32> <{indices}>"
        )

    def convert(self, how: str, value: Value, element: str) -> Value:
        """The same lanes as another type, as in `convert("sext", bytes, "i32")`."""
        kind = element if value.type[0] != "<" else f"{value.type.split(' x ')[0]} x {element}>"
        return self.set(kind, f"{how} {value.type} {value} to {kind}")

    def bits(self, value: Value, type: str) -> Value:
        """The same bits as another type."""
        return self.set(type, f"bitcast {value.type} {value} to {type}")

    def first_lanes(self, count: Value) -> Value:
        """The mask of the first `count` lanes: all of them from that many on, none below 1."""
        steps = ", ".join(f"i64 {i}" for i in range(self.isa.lanes))
        numbers = Value(self, f"<{self.isa.lanes} x i64>", f"<{steps}>")
        return numbers < self.broadcast(count)

    def load_part(self, pointer: Value, mask: Value | None, element: str = "float") -> Value:
        """A vector, of which the lanes outside the mask are not read, and zero."""
        kind = mask.type.replace("i1", element) if mask else f"<{self.isa.lanes} x {element}>"
        if mask is None:
            return self.load(kind, pointer)
        rest = Value(self, kind, "zeroinitializer")
        return self.set(kind, self._intrinsic("masked.load", kind, (pointer, mask, rest), kind))

    def store_part(self, value: Value, pointer: Value, mask: Value | None) -> None:
        """Write the lanes of the mask, and no other."""
        if mask is None:
            self.store(value, pointer)
            return
        self.write(self._intrinsic("masked.store", "void", (value, pointer, mask), value.type))

    def processor_call(self, name: str, returns: str, *arguments: Value) -> Value:
        """An instruction that only one family of processors has."""
        return self.set(returns, self._intrinsic(name, returns, arguments, None))

    def _intrinsic(
        self, name: str, returns: str, arguments: Sequence[Value], kind: str | None
    ) -> str:
        """A call of an intrinsic for vectors of a kind, which is declared by the way."""
        suffix = "" if kind is None else f".{_short(kind)}"
        head = f"{returns} @llvm.{name}{suffix}" + (".p0" if name.startswith("masked") else "")
        self.intrinsics.add(f"declare {head}({', '.join(a.type for a in arguments)})")
        aligned = f"ptr align {_align(kind or '')}"
        given = (f"{aligned if a.type == 'ptr' else a.type} {a}" for a in arguments)
        return f"call {head}({', '.join(given)})"


def _short(type: str) -> str:
    """A type in the name of an intrinsic: v16f32 for <16 x float>."""
    return "v" + type.strip("<>").replace(" x ", "").replace("float", "f32")


def _align(type: str) -> int:
    """Bytes that an address is surely a multiple of: integers stand anywhere in an image."""
    if type in ("ptr", "i64"):
        return 8
    return 1 if type in ("i16", "i32") or type.rstrip(">").endswith("i8") else 4
