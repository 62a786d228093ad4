"""Booting a program on the instruction-set simulator, with the devices of its board.

`tohost` and what is behind it is a device that acts on every write at once, as the fastest host
would. Memory that the program does not bring is full of bytes that are not zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from fewbit.riscv import elf
from fewbit.simulators.riscv.execution import Execution
from fewbit.simulators.riscv.machine import LIMIT, Machine
from fewbit.simulators.riscv.state import Coprocessor, SimulationError
from fewbit.targets.bare_metal.board import PAGE
from fewbit.targets.bare_metal.start import FROM_HOST, TO_HOST

GARBAGE = 0xA5
EXIT_DEVICE, CONSOLE_DEVICE = 0, 1
SYSTEM_WRITE = 64
UART_BYTES = 0x100
READY_16550 = 0x60
LINE_STATUS = 5


@dataclass
class Console:
    """What a program printed, and how it ended."""

    text: str = ""
    status: int | None = None
    """Its exit status."""


@dataclass
class Host:
    """The words that a host watches."""

    machine: Machine
    console: Console
    address: int
    xlen: int
    _words: bytearray = field(default_factory=lambda: bytearray(PAGE))

    @property
    def addresses(self) -> range:
        return range(self.address, self.address + PAGE)

    def load(self, address: int, size: int) -> int:
        at = address - self.address
        return int.from_bytes(self._words[at : at + size], "little")

    def store(self, address: int, size: int, value: int) -> bool:
        at = address - self.address
        self._words[at : at + size] = value.to_bytes(size, "little")
        command = self.load(self.address, 8)
        if at >= 8 or not command:
            return False
        device, number = command >> 56, command >> 48 & 0xFF
        if device == EXIT_DEVICE and command & 1:
            self.console.status = (command & (1 << 48) - 1) >> 1
            return True
        self._words[:8] = bytes(8)
        if (device, number) == (CONSOLE_DEVICE, 1):
            self.console.text += chr(command & 0xFF)
        elif (device, number) == (EXIT_DEVICE, 0):
            self._call(command)
        else:
            raise SimulationError(f"the host knows no command 0x{command:x}")
        return False

    def _call(self, address: int) -> None:
        number, _, start, length = np.frombuffer(self.machine.read(address, 32), "<u8").tolist()
        if number != SYSTEM_WRITE:
            raise SimulationError(f"the host knows no system call {number}")
        self.console.text += self.machine.read(start, length).decode()
        self._words[64:72] = (1).to_bytes(8, "little")


@dataclass
class Uart:
    """A UART that is always ready; bytes are what is written to its first address."""

    console: Console
    address: int

    @property
    def addresses(self) -> range:
        return range(self.address, self.address + UART_BYTES)

    def load(self, address: int, size: int) -> int:
        return READY_16550 if address - self.address == LINE_STATUS else 0

    def store(self, address: int, size: int, value: int) -> bool:
        if address == self.address:
            self.console.text += chr(value & 0xFF)
        return False


@dataclass(frozen=True)
class Booted:
    """What came of a program."""

    printed: str
    status: int
    execution: Execution


def boot(
    program: bytes,
    coprocessor: Coprocessor | None = None,
    *,
    uart: int | None = None,
    native: bool | None = None,
    limit: int = LIMIT,
) -> Booted:
    """Boot a program; `uart` is the address of a UART."""
    executable = elf.read(program)
    base = min(segment.address for segment in executable.segments) // PAGE * PAGE
    if TO_HOST not in executable.symbols or FROM_HOST not in executable.symbols:
        raise SimulationError("the program has no symbols for a host to watch")
    watched = executable.symbols[TO_HOST].address
    inside = tuple(each for each in executable.segments if each.address < watched)
    machine = Machine(
        executable.xlen, watched - base, coprocessor, native=native, lines=True, base=base
    )
    machine.memory[base:] = GARBAGE
    machine.load(replace(executable, segments=inside), clear=False)
    console = Console()
    host = Host(machine, console, watched, executable.xlen)
    devices = [] if uart is None else [Uart(console, uart)]
    machine.state.devices = (host, *devices)
    execution = machine.boot(limit)
    assert console.status is not None
    return Booted(console.text, console.status, execution)
