"""Functions of kernels: the typed builder, with what a processor's vectors add to it.

Loads and stores are aligned as kernels' memory is, and a kernel's function ends by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.llvm import function
from fewbit.llvm.control_flow import Loop
from fewbit.llvm.types import F32, I32, Float, Int, Spelled, Type, Vector, scalar, with_element
from fewbit.llvm.values import Operand, Value
from fewbit.toolchain.isa import Isa

__all__ = ["MOST_DEPTH", "ZEROS", "Function", "Loop", "Value"]

ZEROS = "fewbit_zeros"
"""A row of zeros, as long as one block of a sum: what is absent or outside an image."""
MOST_DEPTH = 4096
"""Bytes of it that one tap of a sum of integers may read."""


class Function(function.Function):
    """One function of a kernel, its parameters as in "ptr x, i64 count".

    `needs` are the functions that it calls. One that stands `apart` calls none, and may be
    compiled once for all programs.
    """

    def __init__(
        self, isa: Isa, name: str, parameters: str, *, public: bool = False, apart: bool = False
    ) -> None:
        super().__init__(name, parameters)
        self.isa = isa
        self.public = public
        self.apart = apart
        self.needs: list[Function] = []

    # Text

    def text(self) -> str:
        """The definition."""
        return self.definition(self.name, "" if self.public else "internal")

    def definition(self, name: str, linkage: str) -> str:
        parameters = ", ".join(
            f"{v.type}{' nocapture' if str(v.type) == 'ptr' else ''} {v}" for v in self.parameters
        )
        head = f"define {linkage} void @{name}({parameters})"
        if not self.ended:
            self.ret()
        return f"{head} nounwind noinline {{\n{self.body()}\n}}\n"

    def call(self, callee: function.Prototype | function.Function, *arguments: Operand) -> Value:
        if isinstance(callee, Function) and callee not in self.needs:
            self.needs.append(callee)
        return super().call(callee, *arguments)

    # Memory

    def alignment(self, type: Type) -> int:
        """Integers stand anywhere in an image."""
        if str(type) in ("ptr", "i64"):
            return 8
        kind = scalar(type)
        is_byte = isinstance(kind, Int) and kind.bits == 8
        return 1 if is_byte or str(type) in ("i16", "i32") else 4

    def load(
        self,
        type: Spelled,
        pointer: Value,
        index: Operand | None = 0,
        *,
        align: int | None = None,
    ) -> Value:
        return super().load(type, pointer, index, align=align)

    def store(
        self,
        value: Value,
        pointer: Value,
        index: Operand | None = 0,
        *,
        align: int | None = None,
    ) -> None:
        super().store(value, pointer, index, align=align)

    def prefetch(self, pointer: Value) -> None:
        """Ask for a line of the cache, into the second level."""
        how = (self.constant(I32, number) for number in (0, 2, 1))
        self.intrinsic("prefetch.p0", "void", pointer, *how)

    def zeros(self) -> Value:
        return self.symbol(ZEROS)

    # Vectors

    @property
    def vector(self) -> Vector:
        return Vector(self.isa.lanes, F32)

    def broadcast(self, scalar: Value, lanes: int | None = None) -> Value:
        """A vector of one number, as long as a register unless `lanes` says otherwise."""
        return self.broadcast_to(scalar, lanes or self.isa.lanes)

    def multiply_add(self, a: Value, b: Value, total: Value) -> Value:
        """a · b + total, rounded once where the processor can."""
        if not self.isa.fma:
            return a * b + total
        return self.intrinsic(f"fma.{_short(self.vector)}", self.vector, a, b, total)

    def clamp(self, value: Value, low: Value, high: Value) -> Value:
        """Between low and high, vectors all three. What is not a number stays so."""
        value = self.select(low > value, low, value)
        return self.at_most(value, high)

    def at_most(self, value: Value, high: Value) -> Value:
        """The smaller of two vectors."""
        return self.select(high < value, high, value)

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
        order = [i for at in range(start, start + lanes // 2) for i in (at, at + lanes)]
        return self.shuffle(a, order, b)

    def first_lanes(self, count: Value) -> Value:
        """The mask of the first `count` lanes: all of them from that many on, none below 1."""
        return self.constants("i64", range(self.isa.lanes)) < self.broadcast(count)

    def load_part(self, pointer: Value, mask: Value | None, element: Spelled = "float") -> Value:
        """A vector, of which the lanes outside the mask are not read, and zero."""
        kind = with_element(mask.type if mask else self.vector, element)
        if mask is None:
            return self.load(kind, pointer)
        name = f"masked.load.{_short(kind)}.p0"
        rest, align = self.zero(kind), self.alignment(kind)
        return self.intrinsic(name, kind, pointer, mask, rest, align=align)

    def store_part(self, value: Value, pointer: Value, mask: Value | None) -> None:
        """Write the lanes of the mask, and no other."""
        if mask is None:
            self.store(value, pointer)
            return
        name = f"masked.store.{_short(value.type)}.p0"
        align = self.alignment(value.type)
        self.intrinsic(name, "void", value, pointer, mask, align=align)

    def processor_call(self, name: str, returns: Spelled, *arguments: Value) -> Value:
        """An instruction that only one family of processors has."""
        return self.intrinsic(name, returns, *arguments)


def _short(type: Type) -> str:
    """A vector in the name of an intrinsic: v16f32 for <16 x float>."""
    element = scalar(type)
    assert isinstance(type, Vector)
    assert isinstance(element, Int | Float)
    return f"v{type.lanes}{'i' if isinstance(element, Int) else 'f'}{element.bits}"
