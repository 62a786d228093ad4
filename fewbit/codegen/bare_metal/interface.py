"""The functions of a bare-metal program, in LLVM IR, called by whoever puts inputs into memory.

    void run(word ports[], void *arena);      /* arena: arena_bytes(ports) bytes, aligned to 64 */
    word arena_bytes(word ports[]);
    word shapes(word ports[]);                /* fills in outputs' dimensions; 0 if inputs fit */

`ports` has, for each input and then each output, its address, followed by those of its dimensions
that only a run knows. There are no threads, and nothing is allocated.
"""

from __future__ import annotations

from collections.abc import Sequence

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.interface import Interface, Port, shapes_prototype
from fewbit.codegen.memref import descriptor, memref_types
from fewbit.errors import UnsupportedError
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import PTR, Int, Type
from fewbit.llvm.values import Operand, Value

FUNCTIONS = ("run", "arena_bytes", "shapes")


def interface_ir(
    interface: Interface,
    entry: str,
    weights_bytes: int,
    processor: Processor,
    first: Sequence[str] = (),
) -> str:
    """Return LLVM IR of these functions, around MLIR's; `run` calls `first` first."""
    if interface.counted:
        raise UnsupportedError(
            f"only a run knows {', '.join(interface.counted_dimensions)}, which this target has no "
            "way to tell",
            hint="end the model before that op, or compile it for cpu",
        )
    writer = _Writer(interface, entry, weights_bytes, processor)
    called_first = [Prototype.of(name, "void") for name in first]
    functions = (writer.run(called_first), writer.arena_bytes(), writer.shapes())
    return "\n".join(
        [
            *(prototype.declaration() for prototype in called_first),
            *writer.declarations(),
            *(function.text() for function in functions),
        ]
    )


class _Writer:
    def __init__(
        self, interface: Interface, entry: str, weights_bytes: int, processor: Processor
    ) -> None:
        self.interface, self.weights_bytes = interface, weights_bytes
        self.index = index = Int(processor.xlen)
        self.ports = (*interface.inputs, *interface.outputs)
        array = memref_types(1, index)
        given = [*(t for p in self.ports for t in memref_types(len(p.shape), index)), *array]
        self.entry = Prototype.of(entry, "void", *given, *array)
        self.entry_arena_bytes = Prototype.of(f"{entry}_arena_bytes", index, *given)
        self.entry_shapes = shapes_prototype(interface, entry, index)

    def declarations(self) -> list[str]:
        called = [self.entry, self.entry_arena_bytes]
        called += [self.entry_shapes] if self.interface.dynamic else []
        symbol = f"@{self.interface.name}_weights"
        return [
            *(prototype.declaration() for prototype in called),
            f"{symbol} = external hidden global i8, align 64",
        ]

    def run(self, first: Sequence[Prototype]) -> Function:
        f = Function("run", "ptr ports, ptr arena")
        ports, arena = f.parameters
        for function in first:
            f.call(function)
        given = [*self._descriptors(f, ports), *self._weights(f)]
        f.call(self.entry, *given, *descriptor(arena, [2**31 - 1]))
        f.ret()
        return f

    def arena_bytes(self) -> Function:
        f = Function("arena_bytes", "ptr ports", self.index)
        given = [*self._descriptors(f, f.parameters[0]), *self._weights(f)]
        f.ret(f.call(self.entry_arena_bytes, *given))
        return f

    def shapes(self) -> Function:
        f = Function("shapes", "ptr ports", self.index)
        if not self.interface.dynamic:
            f.ret(0)
            return f
        (ports,) = f.parameters
        places = fields(self.ports)
        given = [n for port in self.interface.inputs for n in places[port.name][1]]
        shapes = f.call(self.entry_shapes, *(self._load(f, ports, n, self.index) for n in given))
        wanted = [n for port in self.interface.outputs for n in places[port.name][1]]
        for i, number in enumerate(wanted):
            f.store(f.member(shapes, i), self._at(f, ports, number))
        fits = f.member(shapes, len(wanted)) if wanted else shapes
        f.ret(f.select(fits, f.constant(self.index, 0), 1))
        return f

    def _at(self, f: Function, ports: Value, number: int) -> Value:
        return f.at(ports, f.constant(self.index, number), self.index)

    def _load(self, f: Function, ports: Value, number: int, type: Type) -> Value:
        return f.load(type, self._at(f, ports, number))

    def _weights(self, f: Function) -> list[Operand]:
        return descriptor(f.symbol(f"{self.interface.name}_weights"), [self.weights_bytes])

    def _descriptors(self, f: Function, ports: Value) -> list[Operand]:
        """Return the entry's arguments for inputs and outputs."""
        places = fields(self.ports)
        arguments: list[Operand] = []
        for port in self.ports:
            at, dim_fields = places[port.name]
            pointer, dims = self._load(f, ports, at, PTR), iter(dim_fields)
            arguments += descriptor(
                pointer,
                [
                    self._load(f, ports, next(dims), self.index) if size is None else size
                    for size in port.shape
                ],
            )
        return arguments


def fields(ports: Sequence[Port]) -> dict[str, tuple[int, list[int]]]:
    """Return the places of each port's address and dimensions, by its name."""
    places: dict[str, tuple[int, list[int]]] = {}
    index = 0
    for port in ports:
        count = len(port.dimensions)
        places[port.name] = index, list(range(index + 1, index + 1 + count))
        index += 1 + count
    return places
