"""RV64 code sends exactly the commands of a stream, at addresses of its arguments."""

from __future__ import annotations

import numpy as np

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.simulators.gemmini.command import Command
from fewbit.simulators.gemmini.commands import decode
from fewbit.simulators.gemmini.memory import Memory
from fewbit.simulators.riscv.machine import Machine
from fewbit.targets.gemmini.issue import Issuer
from fewbit.targets.gemmini.streams.conv2d import Conv2d, conv2d
from fewbit.targets.gemmini.streams.matmul import Matmul, matmul
from fewbit.targets.gemmini.tiler import ConvShape
from fewbit.toolchain import objects
from fewbit.toolchain.link import link_executable

BUFFERS = ("x", "weight", "bias", "y")
PLACES: dict[str, int] = dict(zip(BUFFERS, (0x40000, 0x50000, 0x60000, 0x70000), strict=True))


class Listener:
    """A coprocessor that only writes down what it is sent."""

    def __init__(self) -> None:
        self.sent: list[Command] = []

    def execute(self, funct: int, rs1: int, rs2: int, memory: Memory) -> int:
        self.sent.append(decode(funct, rs1, rs2))
        return 0


def linked(issuer: Issuer, functions: list[str]) -> bytes:
    isa = Processor(64).isa
    table = objects.parse_ir(issuer.table_ir())
    table.triple = isa.triple
    made = [issuer.assembler.object("double"), objects.emit_object(table, isa)]
    return link_executable(made, functions)


def test_code_sends_what_streams_say() -> None:
    streams = {
        "first": matmul(Matmul(70, 40, 90, bias=True)),
        # So long that the table is read in several stretches.
        "second": conv2d(Conv2d(ConvShape(1, 20, 20, 17, 20, 3, 3, 1, 1, 1, 1, 1))),
    }
    issuer = Issuer()
    for name, stream in streams.items():
        issuer.add(name, stream, BUFFERS)
    assert len(streams["second"]) > 1000
    program = linked(issuer, list(streams))
    for name, stream in streams.items():
        listener = Listener()
        machine = Machine(64, 1 << 20, listener)
        machine.load(program)
        execution = machine.call(name, *PLACES.values())
        assert listener.sent == [command.bind(PLACES) for command in stream]
        assert execution.histogram["rocc"] == len(stream)
        assert execution.instructions <= 5 * len(stream) + 10


def test_the_table_leaves_out_zeros() -> None:
    issuer = Issuer()
    issuer.add("stream", matmul(Matmul(4, 4, 4)), BUFFERS)
    assert 0 not in issuer.operands
    assert np.all(np.array(issuer.operands, np.uint64) > 0)
