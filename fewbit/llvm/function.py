"""One LLVM function under construction: its signature, its calls, its text.

llvmlite's builder was not taken because it writes `icmp slt float` without a word, and has no types
that pyright could check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fewbit.llvm.control_flow import ControlFlow
from fewbit.llvm.types import (
    I64,
    PTR,
    VOID,
    Int,
    IrTypeError,
    Pointer,
    Spelled,
    Type,
    Void,
    type_of,
)
from fewbit.llvm.values import Operand, Value, symbol


@dataclass(frozen=True)
class Prototype:
    """What a call needs of a function: its name and types."""

    name: str
    result: Type
    parameters: tuple[Type, ...]

    @staticmethod
    def of(name: str, result: Spelled, *parameters: Spelled, index: Int = I64) -> Prototype:
        return Prototype(name, type_of(result), tuple(type_of(each, index) for each in parameters))

    def declaration(self, marks: str = "") -> str:
        types = ", ".join(map(str, self.parameters))
        return f"declare {marks}{self.result} {symbol(self.name)}({types})"


class Function(ControlFlow):
    """One LLVM function, its parameters as in "ptr x, index count".

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
        index: Int = I64,
    ) -> None:
        super().__init__(name, index)
        self.result = type_of(result)
        self.linkage, self.attributes = linkage, attributes
        if isinstance(parameters, str):
            parameters = [_parameter(each) for each in parameters.split(",")] if parameters else []
        self.parameters = [
            Value(self, type_of(type, index), f"%{name}") for type, name in parameters
        ]
        self.declared: dict[str, Prototype] = {}

    # Text

    @property
    def prototype(self) -> Prototype:
        return Prototype(self.name, self.result, tuple(p.type for p in self.parameters))

    @property
    def intrinsics(self) -> set[str]:
        return {prototype.declaration() for prototype in self.declared.values()}

    def declaration(self) -> str:
        """Return the line by which another module may call it."""
        return self.prototype.declaration()

    def text(self) -> str:
        """Return the definition."""
        parameters = ", ".join(value.typed for value in self.parameters)
        head = " ".join(filter(None, ("define", self.linkage, str(self.result))))
        attributes = f" {self.attributes}" if self.attributes else ""
        return f"{head} {symbol(self.name)}({parameters}){attributes} {{\n{self.body()}\n}}\n"

    def body(self) -> str:
        if not self.ended:
            raise IrTypeError(f"'{self.name}' goes on after its end")
        lines = (f"  {line}" if line[-1:] != ":" else line for line in self._lines)
        return "\n".join(("entry:", *lines))

    def parameter(self, name: str) -> Value:
        return next(value for value in self.parameters if value.text == f"%{name}")

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
        """Call an intrinsic of LLVM, and declare it; `align` is that of its pointers."""
        types = (argument.type for argument in arguments)
        prototype = Prototype.of(f"llvm.{name}", result, *types)
        if self.declared.setdefault(name, prototype) != prototype:
            raise IrTypeError(f"'{name}' is called with other types than before")
        mark = "" if align is None else f" align {align}"
        given = ", ".join(
            f"ptr{mark} {a}" if isinstance(a.type, Pointer) else a.typed for a in arguments
        )
        return self._call(prototype.result, f"@{prototype.name}({given})")

    def ret(self, value: Operand | None = None) -> None:
        """Return from the function."""
        given = Value(self, VOID, "") if value is None else self.value(value, self.result)
        if given.type != self.result:
            raise IrTypeError(f"'{self.name}' returns {self.result}, not {given.typed}")
        self._write(f"ret {given.typed}".rstrip())
        self.ended = True

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


def _parameter(text: str) -> tuple[str, str]:
    type, name = text.split()
    return type, name


def forward(name: str, to: Prototype) -> str:
    """Return a function of another name that calls one, with the declaration of that."""
    return f"{to.declaration()}\n{forward_to(to, name)}"


def forward_to(to: Prototype, name: str) -> str:
    """Return a function of another name that calls one."""
    f = Function(name, [(type, f"a{i}") for i, type in enumerate(to.parameters)], to.result)
    result = f.call(to, *f.parameters)
    f.ret(None if to.result == VOID else result)
    return f.text()
