"""Instructions of a function under construction: memory, selection, conversions, lanes.

Each method checks its operands' types, writes one instruction and returns its result. Arithmetic
and comparisons are operators of `Value`.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.llvm.types import (
    I1,
    I64,
    PTR,
    Array,
    Float,
    Int,
    IrTypeError,
    Pointer,
    Spelled,
    Struct,
    Type,
    Vector,
    scalar,
    type_of,
    with_element,
)
from fewbit.llvm.values import Constant, Operand, Value, constant, constants, symbol


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


class Instructions:
    """The lines of a function: each method appends an instruction, until a terminator ends it.

    `index` is the type of sizes and addresses: numbers are of it, where nothing else is said.
    """

    def __init__(self, name: str, index: Int = I64) -> None:
        self.name = name
        self.index = index
        self.ended = False
        self._lines: list[str] = []
        self._count = 0

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

    # Constants

    def value(self, operand: Operand, type: Spelled | None = None) -> Value:
        """Return an operand as a value; a number becomes a constant of the type, or an index."""
        if isinstance(operand, Value):
            if operand.function is not self:
                raise IrTypeError(f"{operand.typed} belongs to '{operand.function.name}'")
            return operand
        known = operand if isinstance(operand, Constant) else constant(type or self.index, operand)
        return Value(self, known.type, known.text)

    def constant(self, type: Spelled, value: float | bool) -> Value:
        return self.value(constant(type, value))

    def constants(self, element: Spelled, values: Sequence[float]) -> Value:
        """Return a vector of constants."""
        return self.value(constants(element, values))

    def integer(self, value: Value | int) -> Value:
        return self.value(value, self.index)

    def number(self, value: float) -> Value:
        return self.constant("float", value)

    def zero(self, type: Spelled) -> Value:
        return Value(self, type_of(type), "zeroinitializer")

    def null(self) -> Value:
        return Value(self, PTR, "null")

    def symbol(self, name: str) -> Value:
        """Return the address of a global or function."""
        return self.value(symbol(name))

    # Memory

    def _pointer(self, value: Value) -> str:
        if not isinstance(value.type, Pointer):
            raise IrTypeError(f"{value.typed} is no address")
        return value.typed

    def at(self, pointer: Value, index: Operand, type: Spelled = "float") -> Value:
        """Return the address of an element."""
        position = self.value(index)
        if not isinstance(position.type, Int):
            raise IrTypeError(f"{position.typed} is no index")
        return self.emit(
            PTR, f"getelementptr {type_of(type)}, {self._pointer(pointer)}, {position.typed}"
        )

    def field(self, struct: Struct, pointer: Value, number: int) -> Value:
        """Return the address of a field."""
        if number >= len(struct.fields):
            raise IrTypeError(f"{struct} has no field {number}")
        place = f"{self._pointer(pointer)}, i32 0, i32 {number}"
        return self.emit(PTR, f"getelementptr inbounds {struct}, {place}")

    def alignment(self, type: Type) -> int | None:
        """Return the alignment of a type in bytes; None is the target's own."""
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
        return self.emit(type, f"load {type}, {self._pointer(place)}{self._align(type, align)}")

    def store(
        self,
        value: Value,
        pointer: Value,
        index: Operand | None = None,
        *,
        align: int | None = None,
    ) -> None:
        place = pointer if index is None else self.at(pointer, index, value.type)
        aligned = self._align(value.type, align)
        self._write(f"store {value.typed}, {self._pointer(place)}{aligned}")

    def keep_order(self) -> None:
        """Keep LLVM from moving what reads or writes memory across this place; it is no code."""
        self._write('fence syncscope("singlethread") seq_cst')

    def load_volatile(self, type: Spelled, place: Value) -> Value:
        """Load from memory that others change."""
        type = type_of(type)
        return self.emit(type, f"load volatile {type}, {self._pointer(place)}")

    def store_volatile(self, value: Value, place: Value) -> None:
        """Store to memory that others see."""
        self._write(f"store volatile {value.typed}, {self._pointer(place)}")

    def _align(self, type: Type, align: int | None) -> str:
        align = align or self.alignment(type)
        return "" if align is None else f", align {align}"

    def alloca(self, type: Spelled, align: int | None = None) -> Value:
        """Allocate on the stack."""
        aligned = "" if align is None else f", align {align}"
        return self.emit(PTR, f"alloca {type_of(type)}{aligned}")

    def array(self, type: Spelled, count: int) -> Value:
        """Allocate an array on the stack, aligned to a cache line."""
        return self.alloca(Array(count, type_of(type)), align=64)

    def address(self, pointer: Value) -> Value:
        """Return a pointer as a number."""
        return self.emit(self.index, f"ptrtoint {self._pointer(pointer)} to {self.index}")

    def pointer(self, address: Value) -> Value:
        if address.type != self.index:
            raise IrTypeError(f"{address.typed} is no number of an address")
        return self.emit(PTR, f"inttoptr {address.typed} to ptr")

    # Choices

    def select(self, condition: Value, yes: Operand, no: Operand) -> Value:
        if not isinstance(yes, Value):
            yes = self.value(yes, no.type if isinstance(no, Value | Constant) else self.index)
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
        """Return a / b, rounded up."""
        return (a + (self.integer(b) - 1)) // b

    # Conversions

    def convert(self, how: str, value: Value, element: Spelled) -> Value:
        """Convert lanes to another type, as in `convert("sext", bytes, "i32")`."""
        kind = with_element(value.type, element)
        source, to = scalar(value.type), scalar(kind)
        takes, gives, widens = _CONVERSIONS[how]
        fits = widens is None or _is_narrower(*((source, to) if widens else (to, source)))
        if not (isinstance(source, takes) and isinstance(to, gives) and fits):
            raise IrTypeError(f"there is no {how} from {value.typed} to {kind}")
        return self.emit(kind, f"{how} {value.typed} to {kind}")

    def bits(self, value: Value, type: Spelled) -> Value:
        """Return the same bits as another type (bitcast)."""
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
        """Return lanes of one vector, or of two, in another order."""
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
        """Broadcast a number to a vector."""
        kind = with_element(Vector(lanes, I1), scalar.type)
        one = self.insert(Value(self, kind, "poison"), scalar, 0)
        return self.shuffle(one, [0] * lanes)

    def member(self, struct: Value, number: int) -> Value:
        """Return a field of a struct that is a value."""
        if not isinstance(struct.type, Struct) or number >= len(struct.type.fields):
            raise IrTypeError(f"{struct.typed} has no field {number}")
        return self.emit(struct.type.fields[number], f"extractvalue {struct.typed}, {number}")
