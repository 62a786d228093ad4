"""The exported function: `run` takes nothing, because all addresses are known."""

from __future__ import annotations

from fewbit.codegen.interface import Interface
from fewbit.codegen.memref import descriptor, memref_types
from fewbit.errors import UnsupportedError
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I32
from fewbit.llvm.values import Operand, Value
from fewbit.targets.wasm.memory import MemoryMap

RUN = "run"


def interface_ir(
    interface: Interface, entry: str, places: MemoryMap, sizes: tuple[int, int]
) -> str:
    """Return LLVM IR of `run`, for weights and an arena of these sizes."""
    ports = (*interface.inputs, *interface.outputs)
    if interface.counted or interface.dynamic:
        names = [*interface.counted_dimensions, *(d for p in ports for d in p.dimensions)]
        raise UnsupportedError(
            f"only a run knows {', '.join(names)}, and programs of this target have sizes that are "
            "known",
            hint="give the sizes of inputs: --input-shape x=1x3x96x96",
        )
    array = memref_types(1, I32)
    types = [t for port in ports for t in memref_types(len(port.shape), I32)]
    prototype = Prototype.of(entry, "void", *types, *array, *array)
    f = Function(RUN, "", attributes="nounwind", index=I32)

    def pointer(address: int) -> Value:
        return f.pointer(f.integer(address))

    arguments: list[Operand] = []
    for port, address in zip(ports, (*places.inputs, *places.outputs), strict=True):
        arguments += descriptor(pointer(address), [size or 1 for size in port.shape])
    arguments += descriptor(pointer(places.weights), [sizes[0]])
    arguments += descriptor(pointer(places.arena), [sizes[1]])
    f.call(prototype, *arguments)
    f.ret()
    return f"{prototype.declaration()}\n{f.text()}"
