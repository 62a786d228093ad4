"""The C interface of a compiled program: what its caller fills in, and the code behind it.

    int lenet_run(const lenet_inputs *inputs, lenet_outputs *outputs, void *arena, int threads);

Inputs and outputs are structs of pointers; a dimension that is known only at run time is a field
beside its pointer. The code checks what it is given, then calls the entry function as MLIR
compiled it, whose arguments are memref descriptors. With several threads, each runs the whole
entry function and its part of every loop.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from fewbit.codegen.stubs import literal
from fewbit.codegen.threads import threads_ir
from fewbit.errors import UnsupportedError
from fewbit.program.signature import Signature, TensorSpec
from fewbit.toolchain.isa import Isa

MAX_THREADS = 64
PROFILE_FUNCTIONS = ("profile", "ticks")

ERRORS = (
    ("OK", "no error"),
    ("NULL", "a pointer is null"),
    ("SHAPE", "a dimension is negative, or dimensions do not fit together"),
    ("THREADS", f"the number of threads is not between 1 and {MAX_THREADS}"),
    ("ALIGNMENT", "the arena is not aligned to 64 bytes, or an array not to its elements"),
    ("START", "a thread could not be started"),
    ("VARIANT", "there is no such variant, or this processor does not execute it"),
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
    """Of one element."""
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
        return [f"{self.name}_dim{i}" for i, size in enumerate(self.shape) if size is None]


@dataclass(frozen=True)
class Interface:
    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    profile: bool = False
    """Whether the library counts where its time goes."""

    @property
    def least_bytes(self) -> int:
        """Of inputs and outputs, where all dimensions that only a run knows are 1."""
        ports = (*self.inputs, *self.outputs)
        return sum(port.bytes * prod(size or 1 for size in port.shape) for port in ports)

    @property
    def functions(self) -> tuple[str, ...]:
        """What the library offers."""
        more = PROFILE_FUNCTIONS if self.profile else ()
        return tuple(f"{self.name}_{name}" for name in ("arena_bytes", "shapes", "run", *more))

    @property
    def dynamic(self) -> bool:
        return any(port.dimensions for port in (*self.inputs, *self.outputs))


def interface_of(signature: Signature, name: str, profile: bool = False) -> Interface:
    taken: set[str] = set()
    inputs = tuple(_port(spec, taken) for spec in signature.inputs)
    names = {spec.name: port.name for spec, port in zip(signature.inputs, inputs, strict=True)}
    outputs = tuple(
        replace(_port(spec, taken), updates=spec.updates and names[spec.updates])
        for spec in signature.outputs
    )
    return Interface(c_name(name), inputs, outputs, profile)


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
"""By compilers, and by what our header includes."""
_RESERVED = {*keyword.kwlist, *_WORDS_OF_C.split(), *_WORDS_OF_CPP.split(), *_DEFINED.split()}


def c_name(name: str) -> str:
    """An identifier of C, C++ and Python, none of those that compilers keep for themselves."""
    made = re.sub(r"_+", "_", re.sub(r"\W", "_", name, flags=re.ASCII)).lstrip("_") or "model"
    return f"n{made}" if made[0].isdigit() else f"{made}_" if made in _RESERVED else made


class _Code:
    """LLVM IR, line by line, with fresh names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def __call__(self, text: str) -> str:
        """Emit an instruction that gives a value; its name."""
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def fail_if(self, condition: str, code: str) -> None:
        self.count += 1
        self.do(f"br i1 {condition}, label %fail{self.count}, label %next{self.count}")
        self.label(f"fail{self.count}")
        self.do(f"ret i32 {error_number(code)}")
        self.label(f"next{self.count}")


@dataclass(frozen=True)
class Worth:
    """How many threads beside the caller's have enough to do, where all dimensions are 1."""

    awake: float
    asleep: float
    """Where they have to be woken or started first."""


def interface_ir(
    interface: Interface, entry: str, weights_bytes: int, worth: Worth, isa: Isa
) -> str:
    """LLVM IR of the public functions, given those that MLIR compiled."""
    parts = [
        _types(interface),
        _declarations(interface, entry),
        _arena_bytes(interface, entry, weights_bytes),
        _shapes(interface, entry),
        _part(interface, entry, weights_bytes),
        _run(interface, worth),
        threads_ir(MAX_THREADS, error_number("START"), isa),
    ]
    return "\n".join(parts)


def _types(interface: Interface) -> str:
    def fields(ports: Sequence[Port]) -> str:
        return ", ".join(f for port in ports for f in ["ptr", *["i64"] * len(port.dimensions)])

    return "\n".join(
        (
            f"%inputs = type {{ {fields(interface.inputs)} }}",
            f"%outputs = type {{ {fields(interface.outputs)} }}",
        )
    )


def _memref(rank: int) -> list[str]:
    return ["ptr", "ptr", "i64", *["i64"] * (2 * rank)]


def _entry_types(interface: Interface) -> list[str]:
    ports = (*interface.inputs, *interface.outputs)
    return [*(t for port in ports for t in _memref(len(port.shape))), *_memref(1)]


def _declarations(interface: Interface, entry: str) -> str:
    given = ", ".join(_entry_types(interface))
    arena = ", ".join(_memref(1))
    lines = [
        f"declare void @{entry}({given}, {arena}, i64, i64, ptr)",
        f"declare i64 @{entry}_arena_bytes({given})",
        f"@{interface.name}_weights = external hidden global i8, align 64",
    ]
    if interface.dynamic:
        results = _shape_results(interface)
        inputs = ", ".join("i64" for port in interface.inputs for _ in port.dimensions)
        lines.append(f"declare {results} @{entry}_shapes({inputs})")
    return "\n".join(lines)


def _shape_results(interface: Interface) -> str:
    dims = [d for port in interface.outputs for d in port.dimensions]
    return "{ " + ", ".join([*("i64" for _ in dims), "i1"]) + " }" if dims else "i1"


def _field(code: _Code, struct: str, base: str, index: int, type: str) -> str:
    at = code(f"getelementptr inbounds %{struct}, ptr {base}, i32 0, i32 {index}")
    return code(f"load {type}, ptr {at}")


def _fields(ports: Sequence[Port]) -> Iterator[tuple[Port, int, list[int]]]:
    """Ports, with the numbers of the fields of their pointer and of their dimensions."""
    index = 0
    for port in ports:
        count = len(port.dimensions)
        yield port, index, list(range(index + 1, index + 1 + count))
        index += 1 + count


def _descriptors(code: _Code, interface: Interface, *, pointers: bool) -> list[str]:
    """The arguments of the entry for inputs and outputs."""
    made: list[str] = []
    for struct, ports in (("inputs", interface.inputs), ("outputs", interface.outputs)):
        for port, pointer_field, dim_fields in _fields(ports):
            pointer = "null"
            if pointers:
                pointer = _field(code, struct, f"%{struct}", pointer_field, "ptr")
            dims = iter(dim_fields)
            sizes = [
                str(size)
                if size is not None
                else _field(code, struct, f"%{struct}", next(dims), "i64")
                for size in port.shape
            ]
            made += _descriptor(code, pointer, sizes)
    return made


def _descriptor(code: _Code, pointer: str, sizes: Sequence[str]) -> list[str]:
    strides: list[str] = []
    stride = "1"
    for size in reversed(sizes):
        strides.insert(0, stride)
        if stride.isdigit() and size.isdigit():
            stride = str(int(stride) * int(size))
        elif len(strides) < len(sizes):
            stride = code(f"mul i64 {stride}, {size}")
    integers = [f"i64 {v}" for v in (*sizes, *strides)]
    return [f"ptr {pointer}", f"ptr {pointer}", "i64 0", *integers]


def _weights(interface: Interface, nbytes: int) -> list[str]:
    symbol = f"ptr @{interface.name}_weights"
    return [symbol, symbol, "i64 0", f"i64 {nbytes}", "i64 1"]


STATE_BYTES = 64
"""At the start of an arena: what threads wait at."""


def _arena_bytes(interface: Interface, entry: str, nbytes: int) -> str:
    code = _Code()
    code.lines.append(f"define i64 @{interface.name}_arena_bytes(ptr %inputs) {{")
    if interface.dynamic:
        code.do("%null = icmp eq ptr %inputs, null")
        code.do("br i1 %null, label %none, label %some")
        code.label("none")
        code.do("ret i64 0")
        code.label("some")
    code.do("%outputs = alloca %outputs")
    if interface.dynamic:
        status = code(f"call i32 @{interface.name}_shapes(ptr %inputs, ptr %outputs)")
        code.do(f"%unfit = icmp ne i32 {status}, 0")
        code.do("br i1 %unfit, label %none, label %fit")
        code.label("fit")
    arguments = [
        *_descriptors(code, interface, pointers=False),
        *_weights(interface, nbytes),
    ]
    size = code(f"call i64 @{entry}_arena_bytes({', '.join(arguments)})")
    total = code(f"add i64 {size}, {STATE_BYTES}")
    code.do(f"ret i64 {total}")
    code.lines.append("}")
    return "\n".join(code.lines)


def _shapes(interface: Interface, entry: str) -> str:
    """Fills in the dimensions of outputs, and checks those of inputs."""
    code = _Code()
    code.lines.append(f"define i32 @{interface.name}_shapes(ptr %inputs, ptr %outputs) {{")
    for struct in ("inputs", "outputs"):
        code.fail_if(code(f"icmp eq ptr %{struct}, null"), "NULL")
    if interface.dynamic:
        dims: list[str] = []
        for _, _, dim_fields in _fields(interface.inputs):
            dims += [_field(code, "inputs", "%inputs", field, "i64") for field in dim_fields]
        for dim in dims:
            # A size beyond this cannot be memory, and products of sizes must not overflow.
            code.fail_if(code(f"icmp ugt i64 {dim}, {2**31 - 1}"), "SHAPE")
        given = ", ".join(f"i64 {dim}" for dim in dims)
        found = code(f"call {_shape_results(interface)} @{entry}_shapes({given})")
        _store_shapes(code, interface, found)
    code.do("ret i32 0")
    code.lines.append("}")
    return "\n".join(code.lines)


def _store_shapes(code: _Code, interface: Interface, found: str) -> None:
    type = _shape_results(interface)
    number = 0
    for _, _, dim_fields in _fields(interface.outputs):
        for field in dim_fields:
            value = code(f"extractvalue {type} {found}, {number}")
            at = code(f"getelementptr inbounds %outputs, ptr %outputs, i32 0, i32 {field}")
            code.do(f"store i64 {value}, ptr {at}")
            code.fail_if(code(f"icmp slt i64 {value}, 0"), "SHAPE")
            number += 1
    fits = found if type == "i1" else code(f"extractvalue {type} {found}, {number}")
    code.fail_if(code(f"xor i1 {fits}, true"), "SHAPE")


def _part(interface: Interface, entry: str, nbytes: int) -> str:
    """What one thread of a call does."""
    code = _Code()
    code.lines.append(
        "define void @threads.part"
        "(ptr %inputs, ptr %outputs, ptr %arena, i64 %thread, i64 %threads) {"
    )
    scratch = code(f"getelementptr i8, ptr %arena, i64 {STATE_BYTES}")
    arguments = [
        *_descriptors(code, interface, pointers=True),
        *_weights(interface, nbytes),
        f"ptr {scratch}", f"ptr {scratch}", "i64 0", f"i64 {2**62}", "i64 1",
        "i64 %thread", "i64 %threads", "ptr %arena",
    ]  # fmt: skip
    code.do(f"call void @{entry}({', '.join(arguments)})")
    code.do("ret void")
    code.lines.append("}")
    return "\n".join(code.lines)


def _run(interface: Interface, worth: Worth) -> str:
    code = _Code()
    code.lines.append(
        f"define i32 @{interface.name}_run(ptr %inputs, ptr %outputs, ptr %arena, i32 %threads) {{"
    )
    for value in ("inputs", "outputs", "arena"):
        code.fail_if(code(f"icmp eq ptr %{value}, null"), "NULL")
    for struct, ports in (("inputs", interface.inputs), ("outputs", interface.outputs)):
        for port, pointer_field, _ in _fields(ports):
            pointer = _field(code, struct, f"%{struct}", pointer_field, "ptr")
            code.fail_if(code(f"icmp eq ptr {pointer}, null"), "NULL")
            if port.bytes > 1:
                _check_alignment(code, pointer, port.bytes)
    _check_alignment(code, "%arena", 64)
    too_many = code(f"icmp ugt i32 %threads, {MAX_THREADS}")
    none = code("icmp eq i32 %threads, 0")
    code.fail_if(code(f"or i1 {none}, {too_many}"), "THREADS")
    status = code(f"call i32 @{interface.name}_shapes(ptr %inputs, ptr %outputs)")
    bad = code(f"icmp ne i32 {status}, 0")
    code.do(f"br i1 {bad}, label %unfit, label %fit")
    code.label("unfit")
    code.do(f"ret i32 {status}")
    code.label("fit")
    counts = [_worthwhile(code, interface, more) for more in (worth.awake, worth.asleep)]
    given = ", ".join(["ptr %inputs", "ptr %outputs", "ptr %arena", *(f"i64 {c}" for c in counts)])
    code.do(f"%started = call i32 @threads.run({given})")
    code.do("ret i32 %started")
    code.lines.append("}")
    return "\n".join(code.lines)


def _worthwhile(code: _Code, interface: Interface, worth: float) -> str:
    """How many of `%threads` have enough to do, if work grows with the first dynamic input."""
    sized = (fields for _, _, fields in _fields(interface.inputs) if fields)
    more = literal(worth)
    for field in next(sized, ()):
        size = code(f"uitofp i64 {_field(code, 'inputs', '%inputs', field, 'i64')} to double")
        more = code(f"fmul double {more}, {size}")
    most = literal(MAX_THREADS - 1)
    is_more = code(f"fcmp ogt double {more}, {most}")
    bounded = code(f"select i1 {is_more}, double {most}, double {more}")
    useful = code(f"add i32 {code(f'fptoui double {bounded} to i32')}, 1")
    enough = code(f"icmp ult i32 {useful}, %threads")
    chosen = code(f"select i1 {enough}, i32 {useful}, i32 %threads")
    return code(f"zext i32 {chosen} to i64")


def _check_alignment(code: _Code, pointer: str, alignment: int) -> None:
    address = code(f"ptrtoint ptr {pointer} to i64")
    rest = code(f"and i64 {address}, {alignment - 1}")
    code.fail_if(code(f"icmp ne i64 {rest}, 0"), "ALIGNMENT")
