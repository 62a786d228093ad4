"""Stubs: functions in LLVM IR between a program's memrefs and the kernels that it calls.

A stub takes memrefs apart into pointers and sizes, adds what is known beforehand, and calls a
kernel, once or in loops. Its last arguments are the thread that it runs in and their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import TypeVar, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, TensorType, f16, f32, f64
from xdsl.ir import Attribute, SSAValue

from fewbit.codegen.memref import Size, memref_types, multiply
from fewbit.kernels import emit
from fewbit.kernels.kernel import Kernel, functions_of, module_text
from fewbit.llvm.function import Function, Prototype, forward_to
from fewbit.llvm.types import F16, F32, F64, I64, Array, Int, Spelled, Type, type_of
from fewbit.llvm.values import Operand, Value, array, constant, symbol
from fewbit.toolchain.isa import Isa

KernelT = TypeVar("KernelT", bound=Kernel)
ONE_SCALE = 1 << 62
"""Rows that share a scale, where all of them do."""
SHARED_FROM = 8
"""How often a stub must be there for it to be compiled once."""


@dataclass
class KernelCalls:
    """The calls of a program: which kernels it needs, and the stubs between."""

    isa: Isa
    kernels: dict[str, Kernel] = field(default_factory=dict[str, Kernel])
    stubs: list[Stub] = field(default_factory=lambda: list[Stub]())
    names: list[str] = field(default_factory=list[str])
    most_threads: dict[str, int] = field(default_factory=dict[str, int])
    """By the names of calls that more threads would not make faster."""
    seconds: float = 0.0
    """What the calls take on one thread, about; sizes that only a run knows count as 1."""
    far: bool = False
    """Whether the weights that the program's matmuls read are more than caches hold."""
    largest: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Where calls leave the largest magnitudes of tensors."""

    def use(self, wanted: KernelT) -> KernelT:
        """Add a kernel to the program, and return it."""
        self.kernels.setdefault(wanted.symbol, wanted)
        return wanted

    def name(self, *parts: str) -> str:
        """Return a new name for a call, after what it is for."""
        name = re.sub(r"\W+", "_", "_".join(filter(None, parts)))
        self.names.append(f"kernel.{len(self.names):03}_{name}")
        return self.names[-1]

    def texts(self) -> list[str]:
        """Return LLVM IR of stubs and kernels."""
        return self._texts(tiles=True)

    def texts_without_tiles(self) -> list[str]:
        """Return LLVM IR of stubs and kernels with tiles only declared."""
        return self._texts(tiles=False)

    def _texts(self, *, tiles: bool) -> list[str]:
        if not self.kernels:
            return []
        kernels = self.kernels.values()
        return [
            "\n".join([*(kernel.declaration() for kernel in kernels), *share_alike(self.stubs)]),
            module_text(kernels, self.isa, tiles=tiles),
        ]

    def tiles(self) -> list[emit.Function]:
        """Return what kernels call that can be compiled apart from them."""
        return [each for each in functions_of(self.kernels.values(), self.isa) if each.apart]


@dataclass(frozen=True)
class Memref:
    pointer: Value
    element: Type
    sizes: tuple[Size, ...]
    strides: tuple[Value, ...]


class Stub(Function):
    """A function that takes memrefs apart and calls a kernel."""

    def __init__(self, name: str, memory: Sequence[Attribute], index: Int = I64) -> None:
        shapes = [cast("MemRefType[Attribute]", type).get_shape() for type in memory]
        parameters = [
            each for i, shape in enumerate(shapes) for each in _parameters(i, len(shape), index)
        ]
        super().__init__(name, [*parameters, (index, "thread"), (index, "threads")], index=index)
        self.thread, self.threads = self.parameters[-2:]
        self.kept: list[str] = []
        """Definitions of the constants that it reads."""
        self.called: list[str] = []
        """The kernels that it calls, in order; all but the last prepare."""
        self.most_threads: int | None = None
        """Threads that share the work; others have none."""
        given = iter(self.parameters)
        self.memrefs = [self._take(given, type) for type in memory]

    def _take(self, given: Iterator[Value], type: Attribute) -> Memref:
        shaped = cast("TensorType[Attribute] | MemRefType[Attribute]", type)
        shape, element = shaped.get_shape(), _element(shaped.element_type)
        _, pointer, offset = (next(given) for _ in range(3))
        dynamic = [next(given) for _ in shape]
        strides = tuple(next(given) for _ in shape)
        sizes = tuple(
            value if size == DYNAMIC_INDEX else size
            for size, value in zip(shape, dynamic, strict=True)
        )
        return Memref(self.at(pointer, offset, element), element, sizes, strides)

    def limit_threads(self, most: int) -> None:
        """Threads beyond so many return at once."""
        self.most_threads = most
        every = self.threads
        self.threads = self.select(every.compare("ult", most), every, most)
        with self.unless(self.thread.compare("ult", self.threads)):
            self.ret()

    def product(self, sizes: Sequence[Size]) -> Size:
        return reduce(multiply, sizes, 1)

    def integers(self, values: Sequence[Size]) -> Value:
        """Return an array of integers: a constant, or on the stack what only a run knows."""
        known = [value for value in values if isinstance(value, int)]
        if len(known) == len(values):
            return self._keep(self.index, known)
        numbers = self.alloca(Array(len(values), self.index))
        for i, value in enumerate(values):
            self.store(self.integer(value), numbers, i)
        return numbers

    def floats(self, values: Sequence[float]) -> Value:
        return self._keep(F32, values)

    def _keep(self, element: Type, values: Sequence[float]) -> Value:
        """Return an array of constants in memory that nothing writes to."""
        name = f"{self.name}.{len(self.kept)}"
        content = array([constant(element, value) for value in values])
        self.kept.append(f"{symbol(name)} = internal constant {content.typed}\n")
        return self.symbol(name)

    def advance(self, pointer: Value, element: Spelled, *terms: tuple[Size, Size]) -> Value:
        """Return a pointer advanced by a sum of products; null stays null."""
        if pointer.text == "null":
            return pointer
        for a, b in terms:
            if a == 0 or b == 0:
                continue
            pointer = self.at(pointer, multiply(a, b), element)
        return pointer

    def call_kernel(self, kernel: Kernel, *arguments: Operand) -> None:
        """Call a kernel, as this thread of all of them."""
        self.called.append(kernel.symbol)
        self.call(_prototype(kernel), *arguments, self.thread, self.threads)

    def text(self) -> str:
        if not self.ended:
            self.ret()
        return "".join([*self.kept, super().text()])

    def nameless(self) -> str:
        """Return the text without the name, which is equal for stubs that do the same."""
        return self.text().replace(self.name, "")


def share_alike(stubs: Sequence[Stub]) -> Iterator[str]:
    """Yield LLVM IR of stubs, in which one takes the place of many that only differ in name.

    The layers of a transformer make the same calls. LLVM would put each of them into the entry,
    with the loops of its kernel; one that many call is compiled once.
    """
    alike: dict[str, list[Stub]] = {}
    for stub in stubs:
        alike.setdefault(stub.nameless(), []).append(stub)
    for first, *others in alike.values():
        if len(others) + 1 < SHARED_FROM:
            yield from (each.text() for each in (first, *others))
            continue
        first.attributes = "noinline"
        yield first.text()
        yield from (forward_to(first.prototype, each.name) for each in others)


def _parameters(number: int, rank: int, index: Int) -> list[tuple[Type, str]]:
    """Return the types and names of a memref's parameters."""
    names = [
        *("allocated", "start", "offset"),
        *(f"{what}{i}" for what in ("size", "stride") for i in range(rank)),
    ]
    types = memref_types(rank, index)
    return [(type, f"m{number}_{name}") for type, name in zip(types, names, strict=True)]


FLOATS: dict[Attribute, Type] = {f16: F16, f32: F32, f64: F64}


@cache
def _prototype(kernel: Kernel) -> Prototype:
    return kernel.function().prototype


def _element(type: Attribute) -> Type:
    return FLOATS[type] if type in FLOATS else type_of(str(type))
