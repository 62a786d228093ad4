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
"""A row of zeros, as long as one block of K: what is absent, and padding."""
MOST_DEPTH = 4096
"""Bytes of it that one tap of an integer kernel may read."""


class Function(function.Function):
    """One function of a kernel, its parameters as in "ptr x, index count".

    `needs` are the functions that it calls. One that stands `apart` calls none, and may be
    compiled once for all programs.
    """

    def __init__(
        self, isa: Isa, name: str, parameters: str, *, public: bool = False, apart: bool = False
    ) -> None:
        super().__init__(name, parameters, index=Int(isa.index_bits))
        self.isa = isa
        self.public = public
        self.apart = apart
        self.needs: list[Function] = []

    # Text

    def text(self, attributes: str = "") -> str:
        """Return the definition."""
        return self.definition(self.name, "" if self.public else "internal", attributes)

    def definition(self, name: str, linkage: str, attributes: str = "") -> str:
        parameters = ", ".join(
            f"{v.type}{' nocapture' if str(v.type) == 'ptr' else ''} {v}" for v in self.parameters
        )
        head = f"define {linkage} void @{name}({parameters})"
        if not self.ended:
            self.ret()
        marks = " ".join(filter(None, ("nounwind noinline", attributes)))
        return f"{head} {marks} {{\n{self.body()}\n}}\n"

    def call(self, callee: function.Prototype | function.Function, *arguments: Operand) -> Value:
        if isinstance(callee, Function) and callee not in self.needs:
            self.needs.append(callee)
        return super().call(callee, *arguments)

    # Memory

    def alignment(self, type: Type) -> int:
        """Return the alignment of a type; integers may stand anywhere in an image."""
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
        """Prefetch a cache line into the second level."""
        how = (self.constant(I32, number) for number in (0, 2, 1))
        self.intrinsic("prefetch.p0", "void", pointer, *how)

    def zeros(self) -> Value:
        return self.symbol(ZEROS)

    # Vectors

    @property
    def vector(self) -> Vector:
        return Vector(self.isa.lanes, F32)

    def broadcast(self, scalar: Value, lanes: int | None = None) -> Value:
        """Broadcast a number to a vector, as long as a register unless `lanes` says otherwise."""
        return self.broadcast_to(scalar, lanes or self.isa.lanes)

    def multiply_add(self, a: Value, b: Value, total: Value) -> Value:
        """Return a · b + total: one rounding (FMA) where the processor has it."""
        if not self.isa.fma:
            return a * b + total
        return self.intrinsic(f"fma.{_short(self.vector)}", self.vector, a, b, total)

    def clamp(self, value: Value, low: Value, high: Value) -> Value:
        """Return a vector clamped between two others. NaN stays NaN."""
        value = self.select(low > value, low, value)
        return self.at_most(value, high)

    def at_most(self, value: Value, high: Value) -> Value:
        """Return the smaller of two vectors."""
        return self.select(high < value, high, value)

    def transpose(self, rows: Sequence[Value]) -> list[Value]:
        """Transpose a square matrix of vectors, by interleaving its halves log2(lanes) times."""
        columns, half = list(rows), len(rows) // 2
        for _ in range(half.bit_length()):
            columns = [
                self._interleave(columns[i // 2], columns[i // 2 + half], high=i % 2 == 1)
                for i in range(len(rows))
            ]
        return columns

    def _interleave(self, a: Value, b: Value, *, high: bool) -> Value:
        lanes = self.isa.lanes
        start = lanes // 2 if high else 0
        order = [i for at in range(start, start + lanes // 2) for i in (at, at + lanes)]
        return self.shuffle(a, order, b)

    def first_lanes(self, count: Value) -> Value:
        """Return the mask of the first `count` lanes, clamped between none and all."""
        return self.constants(self.index, range(self.isa.lanes)) < self.broadcast(count)

    def load_part(self, pointer: Value, mask: Value | None, element: Spelled = "float") -> Value:
        """Load a vector; lanes outside the mask are not read, and zero."""
        kind = with_element(mask.type if mask else self.vector, element)
        if mask is None:
            return self.load(kind, pointer)
        name = f"masked.load.{_short(kind)}.p0"
        passthru, align = self.zero(kind), self.alignment(kind)
        return self.intrinsic(name, kind, pointer, mask, passthru, align=align)

    def store_part(self, value: Value, pointer: Value, mask: Value | None) -> None:
        """Write the lanes of the mask, and no other."""
        if mask is None:
            self.store(value, pointer)
            return
        name = f"masked.store.{_short(value.type)}.p0"
        align = self.alignment(value.type)
        self.intrinsic(name, "void", value, pointer, mask, align=align)

    def processor_call(self, name: str, returns: Spelled, *arguments: Value) -> Value:
        """Call an instruction that only one family of processors has."""
        return self.intrinsic(name, returns, *arguments)


def _short(type: Type) -> str:
    """Return a vector in the name of an intrinsic: v16f32 for <16 x float>."""
    element = scalar(type)
    assert isinstance(type, Vector)
    assert isinstance(element, Int | Float)
    return f"v{type.lanes}{'i' if isinstance(element, Int) else 'f'}{element.bits}"
