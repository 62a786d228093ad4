"""Stubs: functions in LLVM IR between a program's memrefs and the kernels that it calls.

A stub takes memrefs apart into pointers and sizes, adds what is known beforehand, and calls a
kernel, once or in loops. Its last arguments are the thread that it runs in and their number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, Float32Type, Float64Type, MemRefType, TensorType
from xdsl.ir import Attribute, SSAValue

from fewbit.kernels.emit import Function
from fewbit.kernels.kernel import Kernel, functions_of, module_text
from fewbit.toolchain.isa import Isa

KernelT = TypeVar("KernelT", bound=Kernel)
Size = int | str
"""A number, or the name of a value."""
ONE_SCALE = 1 << 62
"""Rows that share a scale, where all of them do."""


@dataclass
class KernelCalls:
    """The calls of a program: which kernels it needs, and the stubs between."""

    isa: Isa
    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])
    stubs: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    most_threads: dict[str, int] = field(default_factory=dict[str, int])
    """By the names of calls that more threads would not make faster."""
    seconds: float = 0.0
    """What the calls take on one thread, about; sizes that only a run knows count as 1."""
    largest: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Where calls leave the largest magnitudes of tensors."""

    def use(self, wanted: KernelT) -> KernelT:
        """The kernel, which the program then has."""
        self.kernels.setdefault(wanted.symbol, wanted)
        return wanted

    def name(self, *parts: str) -> str:
        """A new name for a call, after what it is for."""
        name = re.sub(r"\W+", "_", "_".join(filter(None, parts)))
        self.names.append(f"kernel.{len(self.names):03}_{name}")
        return self.names[-1]

    def texts(self) -> list[str]:
        """LLVM IR of stubs and kernels."""
        return self._texts(tiles=True)

    def texts_without_tiles(self) -> list[str]:
        """The same with tiles only declared."""
        return self._texts(tiles=False)

    def _texts(self, *, tiles: bool) -> list[str]:
        if not self.kernels:
            return []
        kernels = self.kernels.values()
        return [
            "\n".join([*(kernel.declaration() for kernel in kernels), *self.stubs]),
            module_text(kernels, self.isa, tiles=tiles),
        ]

    def tiles(self) -> list[Function]:
        """What kernels call that can be compiled apart from them."""
        return [each for each in functions_of(self.kernels.values(), self.isa) if each.apart]


def literal(value: float) -> str:
    """A float as LLVM writes it: the bits of the double of the same value."""
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"


@dataclass(frozen=True)
class Memref:
    pointer: str
    element: str
    sizes: tuple[Size, ...]
    strides: tuple[str, ...]


class Stub:
    """A function in LLVM IR that takes memrefs apart and calls a kernel."""

    def __init__(self, name: str, memory: Sequence[Attribute]) -> None:
        self.name = name
        self.parameters: list[str] = []
        self.lines: list[str] = []
        self.most_threads: int | None = None
        """Threads that share the work; others have none."""
        self.memrefs = [self._take(i, type) for i, type in enumerate(memory)]

    def _take(self, number: int, type: Attribute) -> Memref:
        shaped = cast("TensorType[Attribute] | MemRefType[Attribute]", type)
        shape, element = shaped.get_shape(), _element(shaped.element_type)
        prefix = f"%m{number}"
        self.parameters += [f"ptr {prefix}_allocated", f"ptr {prefix}", f"i64 {prefix}_offset"]
        self.parameters += [f"i64 {prefix}_size{i}" for i in range(len(shape))]
        self.parameters += [f"i64 {prefix}_stride{i}" for i in range(len(shape))]
        sizes = tuple(f"{prefix}_size{i}" if s == DYNAMIC_INDEX else s for i, s in enumerate(shape))
        strides = tuple(f"{prefix}_stride{i}" for i in range(len(shape)))
        start = self.value(f"getelementptr {element}, ptr {prefix}, i64 {prefix}_offset")
        return Memref(start, element, sizes, strides)

    def value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def product(self, sizes: Sequence[Size]) -> Size:
        result: Size = prod(s for s in sizes if isinstance(s, int))
        for size in sizes:
            if isinstance(size, str):
                result = self.value(f"mul i64 {result}, {size}")
        return result

    def array(self, values: Sequence[Size]) -> str:
        array = self.value(f"alloca [{len(values)} x i64]")
        for i, value in enumerate(values):
            at = self.value(f"getelementptr i64, ptr {array}, i64 {i}")
            self.lines.append(f"store i64 {value}, ptr {at}")
        return array

    def floats(self, values: Sequence[float]) -> str:
        array = self.value(f"alloca [{len(values)} x float]")
        for i, value in enumerate(values):
            at = self.value(f"getelementptr float, ptr {array}, i64 {i}")
            self.lines.append(f"store float {literal(value)}, ptr {at}")
        return array

    def at(self, pointer: str, element: str, *terms: tuple[Size, Size]) -> str:
        """A pointer moved on by a sum of products; null stays null."""
        if pointer == "null":
            return pointer
        for a, b in terms:
            if a == 0 or b == 0:
                continue
            step = self.product([a, b])
            pointer = self.value(f"getelementptr {element}, ptr {pointer}, i64 {step}")
        return pointer

    @contextmanager
    def loop(self, count: Size) -> Generator[str]:
        """What is emitted inside is done for each number below `count`, whose name is given."""
        number = len(self.lines)
        before, head, body, after = (f"{part}{number}" for part in ("in", "head", "body", "out"))
        self.lines += [f"br label %{before}", f"{before}:", f"br label %{head}", f"{head}:"]
        index = f"%i{number}"
        self.lines.append(f"{index} = phi i64 [0, %{before}], [%next{number}, %latch{number}]")
        self.lines.append(f"%more{number} = icmp slt i64 {index}, {count}")
        self.lines.append(f"br i1 %more{number}, label %{body}, label %{after}")
        self.lines.append(f"{body}:")
        yield index
        self.lines += [f"br label %latch{number}", f"latch{number}:"]
        self.lines += [f"%next{number} = add i64 {index}, 1", f"br label %{head}", f"{after}:"]

    def call(self, symbol: str, arguments: str) -> None:
        self.lines.append(f"call void @{symbol}({arguments}, i64 %thread, i64 %threads)")

    def text(self) -> str:
        threads = "%threads" if self.most_threads is None else "%all_threads"
        parameters = ", ".join([*self.parameters, "i64 %thread", f"i64 {threads}"])
        body = "\n".join(
            line if line.endswith(":") else f"  {line}"
            for line in [*self._limited(), *self.lines, "ret void"]
        )
        return f"define void @{self.name}({parameters}) {{\n{body}\n}}"

    def _limited(self) -> list[str]:
        """Threads beyond `most_threads` return at once."""
        if self.most_threads is None:
            return []
        return [
            f"%few = icmp ult i64 %all_threads, {self.most_threads}",
            f"%threads = select i1 %few, i64 %all_threads, i64 {self.most_threads}",
            "%works = icmp ult i64 %thread, %threads",
            "br i1 %works, label %work, label %idle",
            "idle:",
            "ret void",
            "work:",
        ]


def _element(type: Attribute) -> str:
    if isinstance(type, Float64Type):
        return "double"
    return "float" if isinstance(type, Float32Type) else str(type)
