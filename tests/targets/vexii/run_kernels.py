"""Products by themselves: several functions in one executable, called with arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fewbit.codegen.bare_metal.runtime_ir import names, runtime_ir
from fewbit.numerics.widths import Width
from fewbit.riscv.assembler import Assembler
from fewbit.simulators.riscv.execution import Execution
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.vexii.kernels.matmul import Code
from fewbit.toolchain import objects
from fewbit.toolchain.link import link_executable

Array = np.ndarray[Any, Any]
PAIRS = [(act, weight) for act in (8, 4, 2, 1) for weight in (8, 4, 2, 1)]


def integers(rng: np.random.Generator, shape: Sequence[int], bits: int) -> Array:
    """Random integers of a width; extremes among them."""
    width = Width.of(bits)
    if width.is_binary:
        return rng.choice(np.array([-1, 1], np.int8), shape)
    return rng.integers(width.qmin, width.qmax + 1, shape).astype(np.int8)


def machine_with(code: Code, called: Sequence[str], memory_bytes: int = 1 << 21) -> Machine:
    """A machine with all functions of the code, of which some can be called."""
    isa = code.processor.isa
    text = code.text()
    for name in called:
        text = text.replace(f"define internal void @{name}(", f"define void @{name}(")
    module = objects.link_modules([text], called, isa)
    objects.optimize(module, isa)
    assembler = Assembler(code.processor.xlen)
    for each in code.assembled.values():
        each.emit(assembler)
    runtime = runtime_ir(code.processor)
    linked = [
        objects.emit_object(module, isa),
        objects.emit_object(objects.link_modules([runtime], names(runtime), isa), isa),
        assembler.object("double"),
    ]
    machine = Machine(code.processor.xlen, memory_bytes)
    machine.load(link_executable(linked, called))
    return machine


def call(
    machine: Machine, name: str, x: Array, panels: Array, shape: Sequence[int], *sizes: int
) -> tuple[Array, Execution]:
    """The sums of a product, and what was counted."""
    starts: list[int] = []
    at = -(-machine.end // 64) * 64
    for size in (x.nbytes, panels.nbytes, 4 * int(np.prod(shape)), 1 << 18):
        starts.append(at)
        at += -(-size // 64) * 64
    machine.write(starts[0], x.tobytes())
    machine.write(starts[1], panels.tobytes())
    execution = machine.call(name, *starts, *sizes)
    sums = np.frombuffer(machine.read(starts[2], 4 * int(np.prod(shape))), np.int32)
    return sums.reshape(shape), execution
