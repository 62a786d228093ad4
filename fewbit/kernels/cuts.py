"""Arithmetic on sizes that is written once: for a kernel's run, and for the cost model.

How a kernel divides its work into blocks, tiles and parts for threads follows from sizes that only
the run knows, so the division is code of the kernel. The cost model has the same sizes as numbers.
A rule takes an `Arithmetic` and sizes of its kind: with a `Function` it emits instructions, with
`Known` it computes. So there is no second copy of a rule, and none that could differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from typing_extensions import TypeVar

from fewbit.kernels.emit import Value
from fewbit.toolchain.isa import Isa


class Size(Protocol):
    """A number, or a condition, that is known now or when a kernel runs."""

    def __add__(self, other: Self | int, /) -> Self: ...
    def __sub__(self, other: Self | int, /) -> Self: ...
    def __mul__(self, other: Self | int, /) -> Self: ...
    def __floordiv__(self, other: Self | int, /) -> Self: ...
    def __mod__(self, other: Self | int, /) -> Self: ...
    def __and__(self, other: Self, /) -> Self: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __lt__(self, other: Self | int, /) -> Self: ...
    def __le__(self, other: Self | int, /) -> Self: ...
    def __gt__(self, other: Self | int, /) -> Self: ...
    def __ge__(self, other: Self | int, /) -> Self: ...
    def equals(self, other: Self | int, /) -> Self: ...


S = TypeVar("S", bound=Size, default=Value)
"""Sizes that a class is of: those of a function, if nothing else is said."""
T = TypeVar("T", bound=Size)
"""Sizes that a rule takes and gives."""


class Arithmetic(Protocol[T]):
    """What a rule may do with sizes, beside what operators do."""

    @property
    def isa(self) -> Isa: ...

    def integer(self, value: int, /) -> T: ...
    def select(self, condition: T, yes: T | int, no: T | int, /) -> T: ...
    def smaller(self, a: T | int, b: T | int, /) -> T: ...
    def larger(self, a: T | int, b: T | int, /) -> T: ...
    def ceiling(self, a: T, b: T | int, /) -> T: ...


@dataclass(frozen=True, eq=False)
class Number:
    """A size that is known; conditions are 0 and 1."""

    value: int

    def __int__(self) -> int:
        return self.value

    def __add__(self, other: Number | int) -> Number:
        return Number(self.value + int(other))

    def __sub__(self, other: Number | int) -> Number:
        return Number(self.value - int(other))

    def __mul__(self, other: Number | int) -> Number:
        return Number(self.value * int(other))

    def __floordiv__(self, other: Number | int) -> Number:
        return Number(self.value // int(other))

    def __mod__(self, other: Number | int) -> Number:
        return Number(self.value % int(other))

    def __and__(self, other: Number) -> Number:
        return Number(self.value & other.value)

    def __or__(self, other: Number) -> Number:
        return Number(self.value | other.value)

    def __lt__(self, other: Number | int) -> Number:
        return Number(int(self.value < int(other)))

    def __le__(self, other: Number | int) -> Number:
        return Number(int(self.value <= int(other)))

    def __gt__(self, other: Number | int) -> Number:
        return Number(int(self.value > int(other)))

    def __ge__(self, other: Number | int) -> Number:
        return Number(int(self.value >= int(other)))

    def equals(self, other: Number | int) -> Number:
        return Number(int(self.value == int(other)))


@dataclass(frozen=True)
class Known:
    """Arithmetic on numbers, for kernels of an instruction set."""

    isa: Isa

    def integer(self, value: int) -> Number:
        return Number(value)

    def select(self, condition: Number, yes: Number | int, no: Number | int) -> Number:
        return Number(int(yes) if condition.value else int(no))

    def smaller(self, a: Number | int, b: Number | int) -> Number:
        return Number(min(int(a), int(b)))

    def larger(self, a: Number | int, b: Number | int) -> Number:
        return Number(max(int(a), int(b)))

    def ceiling(self, a: Number, b: Number | int) -> Number:
        """Return a / b, rounded up."""
        return Number(-(-a.value // int(b)))
