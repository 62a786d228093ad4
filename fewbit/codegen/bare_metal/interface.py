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
from fewbit.codegen.interface import Interface, Port

FUNCTIONS = ("run", "arena_bytes", "shapes")


def interface_ir(
    interface: Interface,
    entry: str,
    weights_bytes: int,
    processor: Processor,
    first: Sequence[str] = (),
) -> str:
    """LLVM IR of these functions, given those that MLIR compiled; `run` calls `first` first."""
    writer = _Writer(interface, entry, weights_bytes)
    parts = [
        *(f"declare void @{function}()" for function in first),
        writer.declarations(),
        writer.run(first),
        writer.arena_bytes(),
        writer.shapes(),
    ]
    return processor.native("\n".join(parts))


class _Writer:
    def __init__(self, interface: Interface, entry: str, weights_bytes: int) -> None:
        self.interface, self.entry, self.weights_bytes = interface, entry, weights_bytes
        self.lines: list[str] = []
        self.ports = (*interface.inputs, *interface.outputs)

    def value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def declarations(self) -> str:
        memory = ", ".join(t for port in self.ports for t in _memref(len(port.shape)))
        given = ", ".join(filter(None, [memory, ", ".join(_memref(1))]))
        lines = [
            f"declare void @{self.entry}({given}, {', '.join(_memref(1))})",
            f"declare i64 @{self.entry}_arena_bytes({given})",
            f"@{self.interface.name}_weights = external hidden global i8, align 64",
        ]
        if self.interface.dynamic:
            dims = [d for port in self.interface.inputs for d in port.dimensions]
            types = ", ".join("i64" for _ in dims)
            lines.append(f"declare {self.shape_results} @{self.entry}_shapes({types})")
        return "\n".join(lines)

    @property
    def shape_results(self) -> str:
        dims = [d for port in self.interface.outputs for d in port.dimensions]
        return "{ " + ", ".join([*("i64" for _ in dims), "i1"]) + " }" if dims else "i1"

    def run(self, first: Sequence[str]) -> str:
        self.lines += [f"  call void @{function}()" for function in first]
        arena = ["ptr %arena", "ptr %arena", "i64 0", f"i64 {2**31 - 1}", "i64 1"]
        given = ", ".join([*self.descriptors(), *self.weights, *arena])
        return self.function(
            "define void @run(ptr %ports, ptr %arena)",
            [f"  call void @{self.entry}({given})", "  ret void"],
        )

    def arena_bytes(self) -> str:
        given = ", ".join([*self.descriptors(), *self.weights])
        size = self.value(f"call i64 @{self.entry}_arena_bytes({given})")
        return self.function("define i64 @arena_bytes(ptr %ports)", [f"  ret i64 {size}"])

    def shapes(self) -> str:
        head = "define i64 @shapes(ptr %ports)"
        if not self.interface.dynamic:
            return self.function(head, ["  ret i64 0"])
        fields = self.fields()
        given = [f for port in self.interface.inputs for f in fields[port.name][1]]
        dims = ", ".join(f"i64 {self.load(number, 'i64')}" for number in given)
        type = self.shape_results
        found = self.value(f"call {type} @{self.entry}_shapes({dims})")
        wanted = [f for port in self.interface.outputs for f in fields[port.name][1]]
        for i, number in enumerate(wanted):
            value = self.value(f"extractvalue {type} {found}, {i}")
            self.lines.append(f"  store i64 {value}, ptr {self.at(number)}")
        fits = found if type == "i1" else self.value(f"extractvalue {type} {found}, {len(wanted)}")
        status = self.value(f"select i1 {fits}, i64 0, i64 1")
        return self.function(head, [f"  ret i64 {status}"])

    def function(self, head: str, end: Sequence[str]) -> str:
        text = "\n".join([f"{head} {{", *self.lines, *end, "}"])
        self.lines = []
        return text

    @property
    def weights(self) -> list[str]:
        symbol = f"ptr @{self.interface.name}_weights"
        return [symbol, symbol, "i64 0", f"i64 {self.weights_bytes}", "i64 1"]

    def fields(self) -> dict[str, tuple[int, list[int]]]:
        return fields(self.ports)

    def at(self, number: int) -> str:
        return self.value(f"getelementptr i64, ptr %ports, i64 {number}")

    def load(self, number: int, type: str) -> str:
        return self.value(f"load {type}, ptr {self.at(number)}")

    def descriptors(self) -> list[str]:
        """The entry's arguments for inputs and outputs."""
        made: list[str] = []
        for name, (pointer_field, dim_fields) in self.fields().items():
            port = next(port for port in self.ports if port.name == name)
            pointer = self.load(pointer_field, "ptr")
            dims = iter(dim_fields)
            sizes = [
                str(size) if size is not None else self.load(next(dims), "i64")
                for size in port.shape
            ]
            integers = [f"i64 {v}" for v in (*sizes, *self.strides(sizes))]
            made += [f"ptr {pointer}", f"ptr {pointer}", "i64 0", *integers]
        return made

    def strides(self, sizes: Sequence[str]) -> list[str]:
        strides = ["1"] if sizes else []
        for size in reversed(sizes[1:]):
            before = strides[0]
            known = before.isdigit() and size.isdigit()
            product = str(int(before) * int(size)) if known else None
            strides.insert(0, product or self.value(f"mul i64 {before}, {size}"))
        return strides


def fields(ports: Sequence[Port]) -> dict[str, tuple[int, list[int]]]:
    """By port, the places of its address and of its dimensions."""
    made: dict[str, tuple[int, list[int]]] = {}
    index = 0
    for port in ports:
        count = len(port.dimensions)
        made[port.name] = index, list(range(index + 1, index + 1 + count))
        index += 1 + count
    return made


def _memref(rank: int) -> list[str]:
    return ["ptr", "ptr", "i64", *["i64"] * (2 * rank)]
