from __future__ import annotations

import struct

import numpy as np
import pytest

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.codegen.bare_metal.runtime_ir import names, runtime_ir
from fewbit.simulators.riscv.machine import Machine
from fewbit.toolchain import objects
from fewbit.toolchain.link import link_executable

BITS = (1 << 64) - 1
NUMBERS = [0, 1, -1, 7, -7, 2**31, -(2**31), 2**53 + 1, -(2**53) - 1, 2**62 + 12345, -(2**63) + 1]


@pytest.fixture(scope="module")
def machine() -> Machine:
    processor = Processor(32)
    text = runtime_ir(processor)
    module = objects.link_modules([text], names(text), processor.isa)
    objects.optimize(module, processor.isa)
    made = Machine(32, 1 << 18)
    made.load(link_executable([objects.emit_object(module, processor.isa)], names(text)))
    return made


def integer(machine: Machine, name: str, *given: int) -> int:
    """Call a function of 64-bit integers; its result, signed."""
    halves = [half for number in given for half in (number & 0xFFFFFFFF, (number & BITS) >> 32)]
    low = machine.call(name, *halves).result
    return struct.unpack("<q", struct.pack("<II", low, machine.state.registers[11]))[0]


def test_divisions(machine: Machine) -> None:
    for a in NUMBERS:
        for b in (1, -1, 3, -3, 10**10, -(2**40)):
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            assert integer(machine, "__divdi3", a, b) == quotient
            assert integer(machine, "__moddi3", a, b) == a - b * quotient
            unsigned = (a & BITS) // (b & BITS), (a & BITS) % (b & BITS)
            found = (integer(machine, name, a, b) & BITS for name in ("__udivdi3", "__umoddi3"))
            assert tuple(found) == unsigned


def test_conversions(machine: Machine) -> None:
    for a in NUMBERS:
        halves = a & 0xFFFFFFFF, (a & BITS) >> 32
        wide = machine.call("__floatdidf", *halves).float_result
        assert struct.unpack("<d", wide.to_bytes(8, "little"))[0] == float(a)
        single = machine.call("__floatdisf", *halves).float_result & 0xFFFFFFFF
        found = struct.unpack("<f", single.to_bytes(4, "little"))[0]
        assert found == float(np.int64(a).astype(np.float32))


def test_copies(machine: Machine) -> None:
    at = -(-machine.end // 64) * 64
    machine.write(at, bytes(range(64)))
    machine.call("memmove", at + 3, at, 20)
    assert machine.read(at + 3, 20) == bytes(range(20))
    machine.call("memcpy", at + 100, at + 40, 7)
    assert machine.read(at + 100, 7) == bytes(range(40, 47))
    machine.call("memset", at, 0x15A, 5)
    assert machine.read(at, 6) == b"\x5a" * 5 + bytes([2])
