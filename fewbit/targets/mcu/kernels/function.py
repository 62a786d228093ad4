"""Functions of kernels for 32-bit cores: the typed builder, and which functions need which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fewbit.codegen.bare_metal.helpers import SMALL
from fewbit.llvm import function
from fewbit.llvm.types import I32, PTR, Spelled, type_of
from fewbit.llvm.values import Operand, Value
from fewbit.targets.mcu.core import Core

ATTRIBUTES = 'noinline nounwind "no-builtins"'
"""A loop that copies is no call of memcpy."""
INDEX = I32
ROUNDED = "fewbit_rounded"
"""The helper that rounds a float to an integer, for cores without an instruction for it."""


class Kernel(function.Function):
    """A function of its own; `needs` are those that it calls."""

    def __init__(self, core: Core, name: str, parameters: str) -> None:
        attributes = f"{ATTRIBUTES} {SMALL}" if core.is_small else ATTRIBUTES
        super().__init__(name, parameters, linkage="internal", attributes=attributes, index=INDEX)
        self.core = core
        self.needs: list[Kernel] = []

    def call(self, callee: function.Prototype | function.Function, *arguments: Operand) -> Value:
        if isinstance(callee, Kernel) and callee not in self.needs:
            self.needs.append(callee)
        return super().call(callee, *arguments)

    def text(self) -> str:
        if not self.ended:
            self.ret()
        return super().text()

    def at(self, pointer: Value, index: Operand, type: Spelled = "float") -> Value:
        """Return the address of an element; one by a number is part of an instruction."""
        if not (self.core.has_offsets and isinstance(index, int) and index >= 0):
            return super().at(pointer, index, type)
        if index == 0:
            return pointer
        return self.emit(PTR, f"getelementptr nuw {type_of(type)}, {pointer.typed}, i32 {index}")

    # Numbers

    def number32(self, value: int) -> Value:
        """Return 32 bits that may be read as signed or not."""
        value &= 0xFFFFFFFF
        return self.constant(I32, value - (1 << 32) if value >> 31 else value)

    def word(self, pointer: Value, index: Operand = 0) -> Value:
        return self.load(I32, pointer, index, align=4)

    def signed(self, byte: Value) -> Value:
        return self.convert("sext", byte, I32)

    def bounded(self, value: Value, low: int, high: int) -> Value:
        """Return an integer between two others."""
        value = self.intrinsic("smax.i32", I32, value, self.number32(low))
        return self.intrinsic("smin.i32", I32, value, self.number32(high))

    def round_to_integer(self, value: Value) -> Value:
        """Return the nearest integer, ties to even; what is too large saturates."""
        if not self.core.has_floats:
            return self.call(function.Prototype.of(ROUNDED, I32, "float"), value)
        if self.core.is_arm:
            nearest = self.intrinsic("arm.vcvtr.f32", "float", value)
            return self.bits(nearest, I32)
        if self.core.rounds_to_floats:
            nearest = self.intrinsic("roundeven.f32", "float", value)
            return self.intrinsic("fptosi.sat.i32.f32", I32, nearest)
        return self.intrinsic("lrint.i32.f32", I32, value)

    def settle(self, values: Sequence[Value]) -> None:
        """Compute values before what follows reads memory.

        Left to itself LLVM computes one accumulator to its end, then the next, and by then has no
        registers for what it has read. Arm's intrinsic takes no room; others have the barrier.
        """
        self.keep_order()
        if self.core.is_arm:
            for value in values:
                self.intrinsic("arm.space", I32, self.integer(0), value)

    # Memory

    def fill(self, to: Value, count: Value | int) -> None:
        """Fill bytes with zeros; whole words where their number is known to be."""
        if isinstance(count, int) and count % 4 == 0:
            with self.loop(0, count // 4) as loop:
                self.store(self.constant(I32, 0), to, loop.index, align=4)
            return
        with self.loop(0, self.integer(count)) as loop:
            self.store(self.constant("i8", 0), to, loop.index)

    def copy(self, given: Value, to: Value, count: Value | int, *, aligned: bool) -> None:
        """Copy bytes; words where both places and the number are whole words."""
        if aligned:
            words = count // 4 if isinstance(count, int) else self.integer(count).shift_right(2)
            with self.loop(0, words) as loop:
                self.store(self.word(given, loop.index), to, loop.index, align=4)
            return
        with self.loop(0, self.integer(count)) as loop:
            self.store(self.load("i8", given, loop.index), to, loop.index)


@dataclass
class Code:
    """The kernels of a program, by their names: layers that are alike share them."""

    core: Core
    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])

    def add(self, kernel: Kernel) -> Kernel:
        """Return the kernel, or the one of the same name that was there before."""
        if kernel.name not in self.kernels:
            self.kernels[kernel.name] = kernel
        return self.kernels[kernel.name]

    def find(self, name: str) -> Kernel | None:
        return self.kernels.get(name)

    def text(self) -> str:
        kernels = self.kernels.values()
        texts = [kernel.text() for kernel in kernels]
        declared = {line for kernel in kernels for line in kernel.intrinsics}
        if any(ROUNDED in text for text in texts):
            declared.add(function.Prototype.of(ROUNDED, I32, "float").declaration())
        return "\n".join([*texts, *sorted(declared)])


def name_of(*parts: object) -> str:
    """Return a name of words and numbers: `tile_2x3`."""
    return "_".join(map(str, parts))


def joined(numbers: Iterable[int] | Sequence[int]) -> str:
    return "x".join(map(str, numbers))
