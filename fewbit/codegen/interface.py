"""The C interface of a compiled program: what its caller fills in, and the code behind it.

    int lenet_run(const lenet_inputs *inputs, lenet_outputs *outputs, void *arena, int threads);

Inputs and outputs are structs of pointers; a dimension that is known only at run time is a field
beside its pointer. The code checks what it is given, then calls the entry function as MLIR
compiled it, whose arguments are memref descriptors. With several threads, each runs the whole
entry function and its part of every loop. Sizes that only a run knows are in the same fields:
before it they say how much room an output must have, after it how much of that is filled.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from fewbit.codegen.memref import descriptor, memref_types
from fewbit.errors import UnsupportedError
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import F64, I1, I8, I32, I64, PTR, Int, Spelled, Struct
from fewbit.llvm.values import Operand, Value
from fewbit.program.signature import Signature, TensorSpec

MAX_THREADS = 64
COUNTED = "counted"
"""The manifest's option that names the sizes which only a run knows."""
PROFILE_FUNCTIONS = ("profile", "ticks")

ERRORS = (
    ("OK", "no error"),
    ("NULL", "a pointer is null"),
    ("SHAPE", "a dimension is negative, or dimensions do not fit together"),
    ("THREADS", f"the number of threads is not between 1 and {MAX_THREADS}"),
    ("ALIGNMENT", "the arena is not aligned to 64 bytes, or an array not to its elements"),
    ("START", "a thread could not be started"),
    ("VARIANT", "there is no such variant, or this processor does not execute it"),
    ("WEIGHTS", "the weights in the file beside the library were not given, or are of another"),
)
"""Codes that functions return, by their number."""


def error_number(code: str) -> int:
    return [name for name, _ in ERRORS].index(code)


C_TYPES = {
    "f32": "float", "f64": "double", "f16": "uint16_t", "bf16": "uint16_t",
    "i1": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "ui8": "uint8_t", "ui16": "uint16_t", "ui32": "uint32_t", "ui64": "uint64_t",
    "si8": "int8_t", "si16": "int16_t", "si32": "int32_t", "si64": "int64_t", "index": "int64_t",
}  # fmt: skip


@dataclass(frozen=True)
class Port:
    """One input or output."""

    name: str
    shape: tuple[int | None, ...]
    element: str
    bytes: int
    """Bytes of one element."""
    updates: str | None = None
    """The input that an output is the new value of; the two may be one array."""

    @property
    def c_type(self) -> str:
        return C_TYPES[self.element]

    @property
    def elements(self) -> int | None:
        """How many there are, where that is known."""
        sizes = [size for size in self.shape if size is not None]
        return prod(sizes) if len(sizes) == len(self.shape) else None

    @property
    def dimensions(self) -> list[str]:
        """The fields that hold its sizes."""
        return [f"{self.name}_dim{i}" for i in self.dynamic_axes]

    @property
    def dynamic_axes(self) -> list[int]:
        return [i for i, size in enumerate(self.shape) if size is None]


@dataclass(frozen=True)
class Interface:
    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    profile: bool = False
    """Whether the library counts where its time goes."""
    beside: bool = False
    """Whether weights are in a file beside the library, whose address it takes."""
    counted: tuple[tuple[int, int], ...] = ()
    """Outputs, by number, and their dimensions whose sizes only a run knows."""

    @property
    def counted_dimensions(self) -> tuple[str, ...]:
        """The fields that hold these sizes."""
        return tuple(f"{self.outputs[i].name}_dim{axis}" for i, axis in self.counted)

    @property
    def least_bytes(self) -> int:
        """Bytes of inputs and outputs, where all dimensions that only a run knows are 1."""
        ports = (*self.inputs, *self.outputs)
        return sum(port.bytes * prod(size or 1 for size in port.shape) for port in ports)

    @property
    def functions(self) -> tuple[str, ...]:
        """What the library offers."""
        more = PROFILE_FUNCTIONS if self.profile else ()
        return tuple(f"{self.name}_{name}" for name in ("arena_bytes", "shapes", "run", *more))

    @property
    def weights_symbol(self) -> str:
        """The weights, or where their address is."""
        return f"{self.name}_weights_at" if self.beside else f"{self.name}_weights"

    @property
    def use_weights(self) -> str:
        """The function that takes the address of weights beside the library."""
        return f"{self.name}_use_weights"

    @property
    def dynamic(self) -> bool:
        return any(port.dimensions for port in (*self.inputs, *self.outputs))


def interface_of(
    signature: Signature, name: str, profile: bool = False, beside: bool = False
) -> Interface:
    taken: set[str] = set()
    inputs = tuple(_port(spec, taken) for spec in signature.inputs)
    names = {spec.name: port.name for spec, port in zip(signature.inputs, inputs, strict=True)}
    outputs = tuple(
        replace(_port(spec, taken), updates=spec.updates and names[spec.updates])
        for spec in signature.outputs
    )
    return Interface(c_name(name), inputs, outputs, profile, beside)


def _port(spec: TensorSpec, taken: set[str]) -> Port:
    element = "i8" if spec.element.startswith("!mico") else spec.element
    if spec.shape is None or element not in C_TYPES:
        raise UnsupportedError(f"'{spec}' is of a type that C has no array for")
    port = Port(c_name(spec.name), spec.shape, element, spec.dtype.itemsize)
    while taken & (names := {n.upper() for n in (port.name, *port.dimensions)}):
        port = replace(port, name=f"{port.name}_")
    taken |= names
    return port


_WORDS_OF_C = """
auto break case char const continue default do double else enum extern float for goto if inline int
long register restrict return short signed sizeof static struct switch typedef union unsigned void
volatile while alignas alignof bool constexpr false nullptr static_assert thread_local true typeof
typeof_unqual
"""
_WORDS_OF_CPP = """
and and_eq asm bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl
concept consteval constinit const_cast decltype delete dynamic_cast explicit export friend mutable
namespace new noexcept not not_eq operator or or_eq private protected public reinterpret_cast
requires static_cast template this throw try typeid typename using virtual wchar_t xor xor_eq
"""
_DEFINED = """
linux unix NULL offsetof size_t ptrdiff_t max_align_t int8_t int16_t int32_t int64_t uint8_t
uint16_t uint32_t uint64_t
"""
"""Names that compilers define, or what our header includes."""
_RESERVED = {*keyword.kwlist, *_WORDS_OF_C.split(), *_WORDS_OF_CPP.split(), *_DEFINED.split()}


def c_name(name: str) -> str:
    """Return an identifier of C, C++ and Python that is not reserved in any of them."""
    identifier = re.sub(r"_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).lstrip("_") or "model"
    if identifier[0].isdigit():
        return f"n{identifier}"
    return f"{identifier}_" if identifier in _RESERVED else identifier


@dataclass(frozen=True)
class Worth:
    """How many threads beside the caller's have enough to do, where all dimensions are 1."""

    awake: float
    asleep: float
    """Where they have to be woken or started first."""


STATE_BYTES = 64
"""At the start of an arena: what threads wait at."""
LARGEST_SIZE = 2**31 - 1
"""A size beyond this cannot be memory, and products of sizes must not overflow."""

_RUN = Prototype.of("threads.run", "i32", "ptr", "ptr", "ptr", "i64", "i64")
"""The runtime's function that calls `threads.part` in each thread."""


def interface_ir(interface: Interface, entry: str, weights_bytes: int, worth: Worth) -> str:
    """Return LLVM IR of the public functions, given those that MLIR compiled, and the runtime's."""
    writer = _Writer(interface, entry, weights_bytes)
    place = "ptr" if interface.beside else "i8, align 64"
    return "\n".join(
        [
            f"@{interface.weights_symbol} = external hidden global {place}",
            *(each.declaration() for each in (writer.entry, writer.entry_arena_bytes, _RUN)),
            writer.entry_shapes.declaration() if interface.dynamic else "",
            writer.arena_bytes().text(),
            writer.shapes().text(),
            writer.part().text(),
            writer.run(worth).text(),
        ]
    )


@dataclass(frozen=True)
class Fields:
    """A struct of the interface: pointers, and behind each the dimensions that only a run knows."""

    ports: Sequence[Port]

    @property
    def type(self) -> Struct:
        return Struct(tuple(t for port in self.ports for t in (PTR, *[I64] * len(port.dimensions))))

    def __iter__(self) -> Iterator[tuple[Port, int, list[int]]]:
        """Yield ports, with the fields of their pointer and of their dimensions."""
        index = 0
        for port in self.ports:
            count = len(port.dimensions)
            yield port, index, list(range(index + 1, index + 1 + count))
            index += 1 + count

    def load(self, f: Function, struct: Value, number: int) -> Value:
        return f.load(self.type.fields[number], f.field(self.type, struct, number))


class _Writer:
    def __init__(self, interface: Interface, entry: str, weights_bytes: int) -> None:
        self.interface, self.weights_bytes = interface, weights_bytes
        self.inputs, self.outputs = Fields(interface.inputs), Fields(interface.outputs)
        ports = (*interface.inputs, *interface.outputs)
        array = memref_types(1)
        counts = memref_types(0) * len(interface.counted)
        given = [*(t for port in ports for t in memref_types(len(port.shape))), *counts, *array]
        self.entry = Prototype.of(entry, "void", *given, *array, "i64", "i64", "ptr")
        self.entry_arena_bytes = Prototype.of(f"{entry}_arena_bytes", "i64", *given)
        self.entry_shapes = shapes_prototype(interface, entry)

    def arena_bytes(self) -> Function:
        f = Function(f"{self.interface.name}_arena_bytes", "ptr inputs", "i64")
        (inputs,) = f.parameters
        outputs = f.alloca(self.outputs.type)
        if self.interface.dynamic:
            fail_if(f, inputs.is_null(), 0)
            status = f.call(self._public("shapes", "i32", "ptr", "ptr"), inputs, outputs)
            fail_if(f, status.differs(0), 0)
        arrays = self._descriptors(f, inputs, outputs, pointers=False)
        arrays += [each for _ in self.interface.counted for each in descriptor(f.null(), [])]
        size = f.call(self.entry_arena_bytes, *arrays, *self._weights(f))
        f.ret(size + STATE_BYTES)
        return f

    def shapes(self) -> Function:
        """Write the function that fills in outputs' dimensions, and checks those of inputs."""
        f = Function(f"{self.interface.name}_shapes", "ptr inputs, ptr outputs", "i32")
        inputs, outputs = f.parameters
        for struct in (inputs, outputs):
            fail_if(f, struct.is_null(), "NULL")
        if not self.interface.dynamic:
            f.ret(0)
            return f
        dims = [self.inputs.load(f, inputs, n) for _, _, fields in self.inputs for n in fields]
        for dim in dims:
            fail_if(f, dim.compare("ugt", LARGEST_SIZE), "SHAPE")
        shapes = f.call(self.entry_shapes, *dims)
        wanted = [n for _, _, fields in self.outputs for n in fields]
        for i, number in enumerate(wanted):
            value = f.member(shapes, i)
            f.store(value, f.field(self.outputs.type, outputs, number))
            fail_if(f, value < 0, "SHAPE")
        fits = f.member(shapes, len(wanted)) if wanted else shapes
        fail_if(f, fits ^ True, "SHAPE")
        f.ret(0)
        return f

    def part(self) -> Function:
        """Write the function that is one thread's part of a call."""
        f = Function("threads.part", "ptr inputs, ptr outputs, ptr arena, i64 thread, i64 threads")
        inputs, outputs, arena, thread, threads = f.parameters
        scratch = f.at(arena, STATE_BYTES, I8)
        f.call(
            self.entry,
            *self._descriptors(f, inputs, outputs, pointers=True),
            *self._counts(f, outputs),
            *self._weights(f),
            *descriptor(scratch, [2**62]),
            *(thread, threads, arena),
        )
        f.ret()
        return f

    def run(self, worth: Worth) -> Function:
        name = f"{self.interface.name}_run"
        f = Function(name, "ptr inputs, ptr outputs, ptr arena, i32 threads", "i32")
        inputs, outputs, arena, threads = f.parameters
        for value in (inputs, outputs, arena):
            fail_if(f, value.is_null(), "NULL")
        for struct, fields in ((inputs, self.inputs), (outputs, self.outputs)):
            for port, number, _ in fields:
                pointer = fields.load(f, struct, number)
                fail_if(f, pointer.is_null(), "NULL")
                if port.bytes > 1:
                    check_alignment(f, pointer, port.bytes)
        check_alignment(f, arena, 64)
        fail_if(f, threads.equals(0) | threads.compare("ugt", MAX_THREADS), "THREADS")
        if self.interface.beside:
            fail_if(f, self._weights_address(f).is_null(), "WEIGHTS")
        status = f.call(self._public("shapes", "i32", "ptr", "ptr"), inputs, outputs)
        with f.when(status.differs(0)):
            f.ret(status)
        counts = [
            self._worthwhile(f, inputs, threads, more) for more in (worth.awake, worth.asleep)
        ]
        if self.interface.counted:
            self._run_and_count(f, inputs, outputs, arena, counts)
        else:
            f.ret(f.call(_RUN, inputs, outputs, arena, *counts))
        return f

    @property
    def _counting(self) -> Struct:
        """The outputs as threads see them: behind their fields are the sizes that they count."""
        return Struct((*self.outputs.type.fields, *[I64] * len(self.interface.counted)))

    def _counts(self, f: Function, outputs: Value) -> list[Operand]:
        """Return the arguments of the entry for sizes that it counts."""
        first, last = len(self.outputs.type.fields), len(self._counting.fields)
        places = [f.field(self._counting, outputs, number) for number in range(first, last)]
        return [each for place in places for each in descriptor(place, [])]

    def _run_and_count(
        self, f: Function, inputs: Value, outputs: Value, arena: Value, threads: Sequence[Value]
    ) -> None:
        """Run with a copy of the outputs' fields, and tell the true sizes once all is done.

        Threads read the fields when they start, which may be after another one ended.
        """
        own, fields = self._counting, self.outputs.type.fields
        copy = f.alloca(own)
        for number in range(len(fields)):
            f.store(self.outputs.load(f, outputs, number), f.field(own, copy, number))
        status = f.call(_RUN, inputs, copy, arena, *threads)
        with f.when(status.differs(0)):
            f.ret(status)
        numbers = {
            (i, axis): number
            for i, (port, _, dims) in enumerate(self.outputs)
            for axis, number in zip(port.dynamic_axes, dims, strict=True)
        }
        for i, place in enumerate(self.interface.counted):
            size = f.load(I64, f.field(own, copy, len(fields) + i))
            f.store(size, f.field(self.outputs.type, outputs, numbers[place]))
        f.ret(0)

    def _worthwhile(self, f: Function, inputs: Value, threads: Value, worth: float) -> Value:
        """Return how many of `threads` have enough work, by the size of the first dynamic input."""
        more = f.constant(F64, float(np.float32(worth)))
        for field in next((fields for _, _, fields in self.inputs if fields), ()):
            more = more * f.convert("uitofp", self.inputs.load(f, inputs, field), F64)
        most = f.constant(F64, float(MAX_THREADS - 1))
        bounded = f.select(more > most, most, more)
        useful = f.convert("fptoui", bounded, I32) + 1
        chosen = f.select(useful.compare("ult", threads), useful, threads)
        return f.convert("zext", chosen, I64)

    def _public(self, name: str, result: Spelled, *parameters: Spelled) -> Prototype:
        return Prototype.of(f"{self.interface.name}_{name}", result, *parameters)

    def _descriptors(
        self, f: Function, inputs: Value, outputs: Value, *, pointers: bool
    ) -> list[Operand]:
        """Return the arguments of the entry for inputs and outputs."""
        arguments: list[Operand] = []
        for struct, fields in ((inputs, self.inputs), (outputs, self.outputs)):
            for port, number, dim_fields in fields:
                pointer = fields.load(f, struct, number) if pointers else f.null()
                dims = iter(dim_fields)
                arguments += descriptor(
                    pointer,
                    [
                        fields.load(f, struct, next(dims)) if size is None else size
                        for size in port.shape
                    ],
                )
        return arguments

    def _weights(self, f: Function) -> list[Operand]:
        return descriptor(self._weights_address(f), [self.weights_bytes])

    def _weights_address(self, f: Function) -> Value:
        place = f.symbol(self.interface.weights_symbol)
        return f.load(PTR, place) if self.interface.beside else place


def shapes_prototype(interface: Interface, entry: str, index: Int = I64) -> Prototype:
    """Return the function that finds the dimensions of outputs, and whether those of inputs fit."""
    results = [index for port in interface.outputs for _ in port.dimensions]
    given = [index for port in interface.inputs for _ in port.dimensions]
    result = Struct((*results, I1)) if results else I1
    return Prototype.of(f"{entry}_shapes", result, *given)


def fail_if(f: Function, condition: Value, code: str | int) -> None:
    """Leave a function with an error, or a value, where a condition holds."""
    with f.when(condition):
        f.ret(error_number(code) if isinstance(code, str) else code)


def check_alignment(f: Function, pointer: Value, alignment: int) -> None:
    fail_if(f, (f.address(pointer) & (alignment - 1)).differs(0), "ALIGNMENT")
