"""One function under construction, in SSA form from the start.

Loops and conditions are `with` blocks, with what a loop changes as its carried values: no optimizer
is needed to keep an accumulator in a register. llvmlite's builder was not taken because it writes
`icmp slt float` without a word, and has no types that pyright could check.

    with f.loop(0, count, carried=[zero]) as loop:
        (total,) = loop.carried
        loop.carry(total + f.load("i64", table, loop.index))
    (total,) = loop.results
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fewbit.llvm.types import (
    I1,
    I64,
    PTR,
    VOID,
    Array,
    Float,
    Int,
    IrTypeError,
    Pointer,
    Spelled,
    Struct,
    Type,
    Vector,
    Void,
    scalar,
    type_of,
    with_element,
)
from fewbit.llvm.values import Constant, Operand, Value, constant, constants, symbol


@dataclass(frozen=True)
class Prototype:
    """A function by which it is called: its name and types."""

    name: str
    result: Type
    parameters: tuple[Type, ...]

    @staticmethod
    def of(name: str, result: Spelled, *parameters: Spelled) -> Prototype:
        return Prototype(name, type_of(result), tuple(map(type_of, parameters)))

    def declaration(self, marks: str = "") -> str:
        types = ", ".join(map(str, self.parameters))
        return f"declare {marks}{self.result} {symbol(self.name)}({types})"


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


def _is_narrower(a: Type, b: Type) -> bool:
    return isinstance(a, Int | Float) and isinstance(b, Int | Float) and a.bits < b.bits


_CONVERSIONS: dict[str, tuple[type[Type], type[Type], bool | None]] = {
    "trunc": (Int, Int, False),
    "zext": (Int, Int, True),
    "sext": (Int, Int, True),
    "fptrunc": (Float, Float, False),
    "fpext": (Float, Float, True),
    "sitofp": (Int, Float, None),
    "uitofp": (Int, Float, None),
    "fptosi": (Float, Int, None),
    "fptoui": (Float, Int, None),
}
"""From and to what each converts, and whether to more bits."""


class Function:
    """One LLVM function, its parameters as in "ptr x, i64 count".

    `intrinsics` are the declarations of those of LLVM's functions that it calls.
    """

    def __init__(
        self,
        name: str,
        parameters: str | Sequence[tuple[Spelled, str]],
        result: Spelled = VOID,
        *,
        linkage: str = "",
        attributes: str = "",
    ) -> None:
        self.name = name
        self.result = type_of(result)
        self.linkage, self.attributes = linkage, attributes
        if isinstance(parameters, str):
            parameters = [_parameter(each) for each in parameters.split(",")] if parameters else []
        self.parameters = [Value(self, type_of(type), f"%{name}") for type, name in parameters]
        self.declared: dict[str, Prototype] = {}
        self._lines: list[str] = []
        self._block = "entry"
        self.ended = False
        self._count = 0

    # Text

    @property
    def prototype(self) -> Prototype:
        return Prototype(self.name, self.result, tuple(p.type for p in self.parameters))

    @property
    def intrinsics(self) -> set[str]:
        return {prototype.declaration() for prototype in self.declared.values()}

    def declaration(self) -> str:
        """The line by which another module may call it."""
        return self.prototype.declaration()

    def text(self) -> str:
        """The definition."""
        parameters = ", ".join(value.typed for value in self.parameters)
        head = " ".join(filter(None, ("define", self.linkage, str(self.result))))
        attributes = f" {self.attributes}" if self.attributes else ""
        return f"{head} {symbol(self.name)}({parameters}){attributes} {{\n{self.body()}\n}}\n"

    def body(self) -> str:
        if not self.ended:
            raise IrTypeError(f"'{self.name}' goes on after its end")
        lines = (f"  {line}" if line[-1:] != ":" else line for line in self._lines)
        return "\n".join(("entry:", *lines))

    def _write(self, line: str) -> None:
        if self.ended:
            raise IrTypeError(f"'{line}' comes after the end of a block")
        self._lines.append(line)

    def emit(self, type: Type, expression: str) -> Value:
        """Name the result of an instruction; for this package, which has checked its operands."""
        self._count += 1
        value = Value(self, type, f"%v{self._count}")
        self._write(f"{value} = {expression}")
        return value

    def parameter(self, name: str) -> Value:
        return next(value for value in self.parameters if value.text == f"%{name}")

    # Constants

    def value(self, operand: Operand, type: Spelled = I64) -> Value:
        """An operand as a value; a number becomes a constant of the type."""
        if isinstance(operand, Value):
            if operand.function is not self:
                raise IrTypeError(f"{operand.typed} belongs to '{operand.function.name}'")
            return operand
        known = operand if isinstance(operand, Constant) else constant(type, operand)
        return Value(self, known.type, known.text)

    def constant(self, type: Spelled, value: float | bool) -> Value:
        return self.value(constant(type, value))

    def constants(self, element: Spelled, values: Sequence[float]) -> Value:
        """A vector of constants."""
        return self.value(constants(element, values))

    def integer(self, value: Value | int) -> Value:
        return self.value(value, I64)

    def number(self, value: float) -> Value:
        return self.constant("float", value)

    def zero(self, type: Spelled) -> Value:
        return Value(self, type_of(type), "zeroinitializer")

    def null(self) -> Value:
        return Value(self, PTR, "null")

    def symbol(self, name: str) -> Value:
        """The address of a global or function."""
        return self.value(symbol(name))

    # Memory

    def _pointer(self, value: Value) -> str:
        if not isinstance(value.type, Pointer):
            raise IrTypeError(f"{value.typed} is no address")
        return value.typed

    def at(self, pointer: Value, index: Operand, type: Spelled = "float") -> Value:
        """The address of an element."""
        position = self.value(index)
        if not isinstance(position.type, Int):
            raise IrTypeError(f"{position.typed} is no index")
        return self.emit(
            PTR, f"getelementptr {type_of(type)}, {self._pointer(pointer)}, {position.typed}"
        )

    def field(self, struct: Struct, pointer: Value, number: int) -> Value:
        """The address of a field."""
        if number >= len(struct.fields):
            raise IrTypeError(f"{struct} has no field {number}")
        place = f"{self._pointer(pointer)}, i32 0, i32 {number}"
        return self.emit(PTR, f"getelementptr inbounds {struct}, {place}")

    def alignment(self, type: Type) -> int | None:
        """Bytes that addresses of a type are multiples of; none is what the processor wants."""
        return None

    def load(
        self,
        type: Spelled,
        pointer: Value,
        index: Operand | None = None,
        *,
        align: int | None = None,
    ) -> Value:
        type = type_of(type)
        place = pointer if index is None else self.at(pointer, index, type)
        return self.emit(type, f"load {type}, {self._pointer(place)}{self._aligned(type, align)}")

    def store(
        self,
        value: Value,
        pointer: Value,
        index: Operand | None = None,
        *,
        align: int | None = None,
    ) -> None:
        place = pointer if index is None else self.at(pointer, index, value.type)
        aligned = self._aligned(value.type, align)
        self._write(f"store {value.typed}, {self._pointer(place)}{aligned}")

    def _aligned(self, type: Type, align: int | None) -> str:
        align = align or self.alignment(type)
        return "" if align is None else f", align {align}"

    def alloca(self, type: Spelled, align: int | None = None) -> Value:
        """Room on the stack."""
        aligned = "" if align is None else f", align {align}"
        return self.emit(PTR, f"alloca {type_of(type)}{aligned}")

    def array(self, type: Spelled, count: int) -> Value:
        """Room on the stack for several, from a line of the cache on."""
        return self.alloca(Array(count, type_of(type)), align=64)

    def address(self, pointer: Value) -> Value:
        """A pointer as a number."""
        return self.emit(I64, f"ptrtoint {self._pointer(pointer)} to i64")

    def pointer(self, address: Value) -> Value:
        if address.type != I64:
            raise IrTypeError(f"{address.typed} is no number of an address")
        return self.emit(PTR, f"inttoptr {address.typed} to ptr")

    # Choices

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        if not isinstance(yes, Value):
            yes = self.value(yes, no.type if isinstance(no, Value | Constant) else I64)
        no = yes.like(no)
        is_vector = isinstance(condition.type, Vector)
        wanted = with_element(yes.type, I1) if is_vector else I1
        if condition.type != wanted:
            raise IrTypeError(f"{condition.typed} does not choose between values of {yes.type}")
        return self.emit(yes.type, f"select {condition.typed}, {yes.typed}, {no.typed}")

    def smaller(self, a: Value | int, b: Value | int) -> Value:
        a = self.integer(a)
        return self.select(a < b, a, b)

    def larger(self, a: Value | int, b: Value | int) -> Value:
        a = self.integer(a)
        return self.select(a > b, a, b)

    def ceiling(self, a: Value, b: Value | int) -> Value:
        """a / b, rounded up."""
        return (a + (self.integer(b) - 1)) // b

    # Conversions

    def convert(self, how: str, value: Value, element: Spelled) -> Value:
        """The same lanes as another type, as in `convert("sext", bytes, "i32")`."""
        kind = with_element(value.type, element)
        source, to = scalar(value.type), scalar(kind)
        takes, gives, widens = _CONVERSIONS[how]
        fits = widens is None or _is_narrower(*((source, to) if widens else (to, source)))
        if not (isinstance(source, takes) and isinstance(to, gives) and fits):
            raise IrTypeError(f"there is no {how} from {value.typed} to {kind}")
        return self.emit(kind, f"{how} {value.typed} to {kind}")

    def bits(self, value: Value, type: Spelled) -> Value:
        """The same bits as another type."""
        type = type_of(type)
        numbers = (Int, Float, Vector)
        if (
            not isinstance(value.type, numbers)
            or not isinstance(type, numbers)
            or value.type.bits != type.bits
        ):
            raise IrTypeError(f"{value.typed} and {type} have other bits")
        return self.emit(type, f"bitcast {value.typed} to {type}")

    # Lanes and fields

    def insert(self, vector: Value, lane: Operand, index: int) -> Value:
        if not isinstance(vector.type, Vector) or not 0 <= index < vector.type.lanes:
            raise IrTypeError(f"{vector.typed} has no lane {index}")
        given = self.value(lane, vector.type.element)
        if given.type != vector.type.element:
            raise IrTypeError(f"{given.typed} is no lane of {vector.typed}")
        return self.emit(vector.type, f"insertelement {vector.typed}, {given.typed}, i64 {index}")

    def extract(self, vector: Value, index: int) -> Value:
        if not isinstance(vector.type, Vector) or not 0 <= index < vector.type.lanes:
            raise IrTypeError(f"{vector.typed} has no lane {index}")
        return self.emit(vector.type.element, f"extractelement {vector.typed}, i64 {index}")

    def shuffle(self, a: Value, order: Sequence[int], b: Value | None = None) -> Value:
        """Lanes of one vector, or of two, in another order."""
        b = Value(self, a.type, "poison") if b is None else a.like(b)
        if not isinstance(a.type, Vector) or not all(0 <= i < 2 * a.type.lanes for i in order):
            raise IrTypeError(f"{a.typed} has not all of the lanes {order}")
        result = Vector(len(order), a.type.element)
        if not any(order):
            text = f"<{len(order)} x i32> zeroinitializer"
        else:
            text = constants("i32", order).typed
        return self.emit(result, f"shufflevector {a.typed}, {b.typed}, {text}")

    def broadcast_to(self, scalar: Value, lanes: int) -> Value:
        """A vector of one number."""
        kind = with_element(Vector(lanes, I1), scalar.type)
        one = self.insert(Value(self, kind, "poison"), scalar, 0)
        return self.shuffle(one, [0] * lanes)

    def member(self, struct: Value, number: int) -> Value:
        """A field of a struct that is a value."""
        if not isinstance(struct.type, Struct) or number >= len(struct.type.fields):
            raise IrTypeError(f"{struct.typed} has no field {number}")
        return self.emit(struct.type.fields[number], f"extractvalue {struct.typed}, {number}")

    # Calls

    def call(self, callee: Prototype | Function, *arguments: Operand) -> Value:
        """Call a function; numbers become constants of its parameters' types."""
        if isinstance(callee, Function):
            callee = callee.prototype
        given = self._arguments(callee, arguments)
        return self._call(callee.result, f"{symbol(callee.name)}({given})")

    def leave(self, callee: Prototype | Value, *arguments: Operand) -> None:
        """End with a call that takes this function's place: it must have the same parameters."""
        mine = self.prototype
        types = mine if isinstance(callee, Value) else callee
        if (types.parameters, types.result) != (mine.parameters, mine.result):
            raise IrTypeError(f"'{types.name}' cannot take the place of '{self.name}'")
        name = callee if isinstance(callee, Value) else symbol(callee.name)
        if name.type != PTR:
            raise IrTypeError(f"{name.typed} cannot be called")
        given = self._arguments(mine, arguments)
        result = self._call(mine.result, f"{name}({given})", marks="musttail ")
        self.ret(None if mine.result == VOID else result)

    def call_at(self, pointer: Value, types: Prototype, *arguments: Operand) -> Value:
        """Call the function at an address."""
        self._pointer(pointer)
        return self._call(types.result, f"{pointer}({self._arguments(types, arguments)})")

    def _arguments(self, callee: Prototype, arguments: Sequence[Operand]) -> str:
        if len(arguments) != len(callee.parameters):
            raise IrTypeError(
                f"'{callee.name}' takes {len(callee.parameters)} arguments, not {len(arguments)}"
            )
        given = [self.value(a, type) for a, type in zip(arguments, callee.parameters, strict=True)]
        for value, type in zip(given, callee.parameters, strict=True):
            if value.type != type:
                raise IrTypeError(f"'{callee.name}' takes {type}, not {value.typed}")
        return ", ".join(value.typed for value in given)

    def _call(self, result: Type, text: str, marks: str = "") -> Value:
        expression = f"{marks}call {result} {text}"
        if isinstance(result, Void):
            self._write(expression)
            return Value(self, VOID, "")
        return self.emit(result, expression)

    def intrinsic(
        self, name: str, result: Spelled, *arguments: Value, align: int | None = None
    ) -> Value:
        """Call an intrinsic of LLVM, which is declared by the way; `align` is of its pointers."""
        types = (argument.type for argument in arguments)
        prototype = Prototype.of(f"llvm.{name}", result, *types)
        if self.declared.setdefault(name, prototype) != prototype:
            raise IrTypeError(f"'{name}' is called with other types than before")
        mark = "" if align is None else f" align {align}"
        given = ", ".join(
            f"ptr{mark} {a}" if isinstance(a.type, Pointer) else a.typed for a in arguments
        )
        return self._call(prototype.result, f"@{prototype.name}({given})")

    # Control

    def ret(self, value: Operand | None = None) -> None:
        """Return."""
        given = Value(self, VOID, "") if value is None else self.value(value, self.result)
        if given.type != self.result:
            raise IrTypeError(f"'{self.name}' returns {self.result}, not {given.typed}")
        self._write(f"ret {given.typed}".rstrip())
        self.ended = True

    def _label(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def _begin(self, label: str) -> None:
        self.ended = False
        self._write(f"{label}:")
        self._block = label

    def _jump(self, label: str) -> None:
        self._write(f"br label %{label}")
        self.ended = True

    def _branch(self, condition: Value, yes: str, no: str, marks: str = "") -> None:
        if condition.type != I1:
            raise IrTypeError(f"{condition.typed} is no condition")
        self._write(f"br i1 {condition}, label %{yes}, label %{no}{marks}")
        self.ended = True

    @contextmanager
    def when(self, condition: Value) -> Generator[None]:
        """Do the body if the condition holds."""
        body, end = self._label("then"), self._label("end")
        self._branch(condition, body, end)
        self._begin(body)
        yield
        if not self.ended:
            self._jump(end)
        self._begin(end)

    @contextmanager
    def unless(self, condition: Value, *, rarely: bool = False) -> Generator[None]:
        """Do the body, which leaves the function, where the condition does not hold."""
        on, off = self._label("on"), self._label("off")
        self._branch(condition, on, off, ", !prof !0" if rarely else "")
        self._begin(off)
        yield
        if not self.ended:
            raise IrTypeError(f"'{self.name}' goes on where a condition does not hold")
        self._begin(on)

    def switch(
        self, value: Value, cases: Sequence[tuple[int, Function]], *arguments: Value
    ) -> None:
        """Call the function that stands beside the value, if one does."""
        labels = [self._label("case") for _ in cases]
        end = self._label("end")
        numbers = [self.value(n, value.type).typed for n, _ in cases]
        table = " ".join(f"{n}, label %{at}" for n, at in zip(numbers, labels, strict=True))
        self._write(f"switch {value.typed}, label %{end} [{table}]")
        self.ended = True
        for label, (_, callee) in zip(labels, cases, strict=True):
            self._begin(label)
            self.call(callee, *arguments)
            self._jump(end)
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
        self._jump(first)
        self._begin(first)
        starts = [self.integer(start), *carried]
        place = len(self._lines)
        phis = [self.emit(v.type, "phi") for v in starts]
        if not hot:
            self._branch(phis[0] < stop, body, end)
            self._begin(body)
        loop = Loop(phis[0], phis[1:], step, [], phis[1:])
        yield loop
        following = [phis[0] + loop.step, *loop.following]
        latch = self._block
        if hot:
            self._branch(following[0] < stop, body, end)
            loop.results = loop.following
        else:
            self._jump(head)
        self._begin(end)
        for i, (phi, value, later) in enumerate(zip(phis, starts, following, strict=True)):
            incoming = f"[{value}, %{before}], [{phi.like(later)}, %{latch}]"
            self._lines[place + i] = f"{phi} = phi {phi.type} {incoming}"


def _parameter(text: str) -> tuple[str, str]:
    type, name = text.split()
    return type, name


def forward(name: str, to: Prototype) -> str:
    """A function of another name that calls one, with the declaration of that."""
    f = Function(name, [(type, f"a{i}") for i, type in enumerate(to.parameters)], to.result)
    result = f.call(to, *f.parameters)
    f.ret(None if to.result == VOID else result)
    return f"{to.declaration()}\n{f.text()}"
