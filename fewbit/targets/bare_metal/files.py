"""The files of an artifact that boots: a program with an input inside, and what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fewbit.codegen.bare_metal.device_calls import DeviceCalls
from fewbit.codegen.bare_metal.interface import fields
from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.boot.embedded import Embedded, make_up_inputs
from fewbit.codegen.interface import Interface, Port
from fewbit.errors import UnsupportedError
from fewbit.passes.llvm.translate_to_bare_metal_ir import LayerFunctions
from fewbit.pipeline.compilation import Compilation
from fewbit.program.artifact import Content
from fewbit.program.program import Program
from fewbit.program.signature import signature_of
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.bare_metal.board import Board
from fewbit.targets.bare_metal.folders import core_folder
from fewbit.targets.bare_metal.layers import layer_of
from fewbit.targets.bare_metal.link import link_boot_program
from fewbit.targets.bare_metal.program import Run

Shapes = Sequence[tuple[int, ...]]
LINE = 64


@dataclass(frozen=True)
class Linked:
    """A program that others call."""

    objects: Sequence[bytes]
    executable: bytes


def boot_files(
    made: Compilation, program: Program, linked: Linked, board: Board
) -> dict[str, Content]:
    """Return the program that boots; a batch that is left open is one sample."""
    interface, processor = made.ctx.get(Interface), made.ctx.get(Processor)
    ports = (*interface.inputs, *interface.outputs)
    _refuse_open_sizes(ports)
    inputs = make_up_inputs(signature_of(program.module))
    expected = [np.asarray(array) for array in program.run(*inputs)]
    shapes = [array.shape for array in (*inputs, *expected)]
    embedded = Embedded(
        inputs,
        [(array.size, array.itemsize) for array in expected],
        _arena_bytes(linked.executable, processor, ports, shapes),
        expected,
    )
    layers = [layer_of(name) for name in made.ctx.get(LayerFunctions).names]
    run = Run(ports, embedded, shapes, layers)
    calls = made.ctx.get(DeviceCalls)
    elf = link_boot_program(linked.objects, processor, board, run, calls.has_coprocessor)
    return {
        f"{interface.name}.elf": elf,
        **core_folder(interface.name, processor, board, calls.needs),
    }


def _refuse_open_sizes(ports: Sequence[Port]) -> None:
    for port in ports:
        if open_axes := [axis for axis in port.dynamic_axes if axis]:
            raise UnsupportedError(
                f"only a run knows dimension {open_axes[0]} of '{port.name}', and a program that "
                "boots has its input inside",
                hint="give the shapes of inputs, --input-shape 1x3x32x32",
            )


def _arena_bytes(
    program: bytes, processor: Processor, ports: Sequence[Port], shapes: Shapes
) -> int:
    """Return what the program says that it needs for these sizes."""
    words: list[int] = [0] * sum(1 + len(port.dimensions) for port in ports)
    for port, shape in zip(ports, shapes, strict=True):
        _, dimensions = fields(ports)[port.name]
        for place, axis in zip(dimensions, port.dynamic_axes, strict=True):
            words[place] = shape[axis]
    size = 1 << (len(program) + (1 << 20)).bit_length()
    machine = Machine(processor.xlen, size)
    machine.load(program)
    at = -(-machine.end // LINE) * LINE
    machine.write(at, np.array(words, f"<u{processor.xlen // 8}"))
    return machine.call("arena_bytes", at).result
