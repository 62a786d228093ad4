"""Running an artifact on the instruction-set simulator.

Memory holds the program, behind it the ports, inputs, outputs and arena, and the stack at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fewbit.errors import ShapeError
from fewbit.program.artifact import Folder, Tensor
from fewbit.runtime.native import dtype_of
from fewbit.simulators.riscv.execution import Execution as Counted
from fewbit.simulators.riscv.execution import Histogram
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.bare_metal.layers import layer_of
from fewbit.targets.device import Events, Execution, LayerEvents

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
STACK_BYTES = 1 << 20
MEMORY_BYTES = 1 << 31
PROGRAM = "program.elf"
TAKEN = "branches taken"
MISSES = ("lines fetched, 4 KB", "lines fetched, 8 KB")
"""By data caches of one way and of two; as many as the simulator counts."""
BYTES = {
    **dict.fromkeys(("lb", "lbu", "sb"), 1),
    **dict.fromkeys(("lh", "lhu", "sh"), 2),
    **dict.fromkeys(("lw", "lwu", "sw", "flw", "fsw"), 4),
    **dict.fromkeys(("ld", "sd", "fld", "fsd"), 8),
}
"""What loads and stores move."""


@dataclass
class VexiiSimulator:
    """Runs one artifact on the instruction-set simulator."""

    folder: Folder
    native: bool = True
    _elf: bytes = field(init=False)

    def __post_init__(self) -> None:
        self._elf = self.folder.file(PROGRAM).read_bytes()

    @property
    def xlen(self) -> int:
        return int(self.folder.manifest.options["xlen"])

    def run(self, inputs: Sequence[Array]) -> Execution:
        """Return the outputs, and events: instructions by class, and those of each layer."""
        outputs, counted = self.execute(inputs)
        return Execution(outputs, self._events(counted))

    def execute(self, inputs: Sequence[Array]) -> tuple[tuple[Array, ...], Counted]:
        """Return the outputs, and what the simulator counted while the program ran."""
        call = _Call(self, inputs)
        return call.outputs, call.counted

    def machine(self, data_bytes: int) -> Machine:
        """Return a machine with the program loaded, and room for so much data behind it."""
        size = self.memory_bytes(data_bytes)
        machine = Machine(self.xlen, size, native=self.native, lines=True)
        machine.load(self._elf)
        return machine

    def memory_bytes(self, data_bytes: int) -> int:
        """Return the memory that the program takes with its stack and so much data."""
        size = len(self._elf) + data_bytes + STACK_BYTES + (1 << 17)
        size = 1 << max(size - 1, 1).bit_length()
        if size > MEMORY_BYTES:
            raise ShapeError(f"inputs of this size need more memory than {MEMORY_BYTES} bytes")
        return size

    def _events(self, counted: Counted) -> Events:
        names = self.folder.manifest.options.get("layers", "").split(",")
        layers: dict[str, dict[str, int]] = {}
        for number, histogram in sorted(counted.by_mark.items()):
            counts = layers.setdefault(layer_of(names[number]), {})
            for kind, count in counts_of(histogram).items():
                counts[kind] = counts.get(kind, 0) + count
        events = tuple(LayerEvents(name, counts) for name, counts in layers.items())
        return Events(counts_of(counted.histogram), events)


def counts_of(histogram: Histogram) -> dict[str, int]:
    """Return instructions by class, all of them, and the bytes that they moved."""
    kinds = {str(kind): count for kind, count in sorted(histogram.kinds.items())}
    moved = sum(count * BYTES.get(name, 0) for name, count in histogram.mnemonics.items())
    counts = {"instructions": histogram.instructions, "bytes": moved, **kinds}
    fetched = dict(zip(MISSES, histogram.misses, strict=False))
    return counts | {TAKEN: histogram.taken} | fetched


class _Call:
    """One run: where everything lies, and what came out."""

    def __init__(self, simulator: VexiiSimulator, inputs: Sequence[Array]) -> None:
        manifest = simulator.folder.manifest
        self.tensors = (*manifest.inputs, *manifest.outputs)
        self.input_count = len(manifest.inputs)
        self.word = simulator.xlen // 8
        shapes: list[tuple[int, ...]] = [array.shape for array in inputs]
        given = sum(_align(array.nbytes) for array in inputs)
        machine = simulator.machine(given)
        ports = _align(machine.end)
        # Addresses come later: sizes of outputs depend on those of inputs alone.
        machine.write(ports, self._ports([0] * len(self.tensors), shapes))
        if machine.call("shapes", ports).result:
            raise ShapeError("the inputs do not fit together")
        shapes += self._output_shapes(machine, ports)
        arena = machine.call("arena_bytes", ports).result
        sizes = [
            _align(int(np.prod(shape, dtype=int)) * dtype_of(tensor).itemsize)
            for tensor, shape in zip(self.tensors, shapes, strict=True)
        ]
        machine = simulator.machine(sum(sizes) + arena)
        starts = np.cumsum([ports + _align(self._port_bytes), *sizes]).tolist()
        for start, array in zip(starts, inputs, strict=False):
            machine.write(start, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        machine.write(ports, self._ports(starts[:-1], shapes))
        self.counted = machine.call("run", ports, starts[-1])
        self.outputs = tuple(
            self._read(machine, *place)
            for place in list(zip(self.tensors, shapes, starts, strict=False))[len(inputs) :]
        )

    @property
    def _port_bytes(self) -> int:
        dynamic = sum(tensor.shape.count(None) for tensor in self.tensors)
        return (len(self.tensors) + dynamic) * self.word

    def _ports(self, starts: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> bytes:
        """Return addresses, each with its dynamic dimensions; 0 where still unknown."""
        words: list[int] = []
        for number, tensor in enumerate(self.tensors):
            shape = shapes[number] if number < len(shapes) else (0,) * len(tensor.shape)
            pairs = zip(tensor.shape, shape, strict=True)
            words += [starts[number], *(actual for size, actual in pairs if size is None)]
        return np.array(words, f"<u{self.word}").tobytes()

    def _output_shapes(self, machine: Machine, ports: int) -> list[tuple[int, ...]]:
        words = np.frombuffer(machine.read(ports, self._port_bytes), f"<u{self.word}").tolist()
        shapes: list[tuple[int, ...]] = []
        place = 0
        for tensor in self.tensors:
            place += 1
            sizes: list[int] = []
            for size in tensor.shape:
                sizes.append(words[place] if size is None else size)
                place += size is None
            shapes.append(tuple(sizes))
        return shapes[self.input_count :]

    def _read(self, machine: Machine, tensor: Tensor, shape: tuple[int, ...], start: int) -> Array:
        dtype = dtype_of(tensor)
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        return np.frombuffer(machine.read(start, size), dtype).reshape(shape).copy()


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
