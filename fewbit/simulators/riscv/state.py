"""What a processor holds: registers and memory, the same for both simulators.

Registers are one array: the integer registers, at 32 a place for results that go to x0, and from
64 the floating-point registers. Integers are kept unsigned. An address is an index into `memory`;
the lowest page belongs to nothing, so that null pointers are found.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import Error
from fewbit.simulators.riscv.lines import RecentLines

NOWHERE, FLOATS, REGISTERS = 32, 64, 96
LOWEST = 0x1000
RETURN = 0x8
"""Where a call returns to: an address without code, which ends the run."""
FLOATS_ON, EXTENSIONS_ON = 0x6000, 0x18000
"""Fields of mstatus, FS and XS: where they are 0, floats and commands are illegal."""

Memory = NDArray[np.uint8]


class SimulationError(Error):
    """A program that did what it must not, or did not end."""


class Registers(Protocol):
    """A list, or an array that machine code can read as well."""

    def __getitem__(self, index: int, /) -> int: ...
    def __setitem__(self, index: int, value: int, /) -> None: ...


class Coprocessor(Protocol):
    """What custom-3 instructions are handed to."""

    def execute(self, funct: int, rs1: int, rs2: int, memory: Memory) -> int | None:
        """Execute a command; a result goes to the register that the instruction names, if any."""
        ...


class MemoryMapped(Protocol):
    """A device at addresses outside of memory."""

    @property
    def addresses(self) -> range: ...

    def load(self, address: int, size: int) -> int:
        """Return what a load of so many bytes reads."""
        ...

    def store(self, address: int, size: int, value: int) -> bool:
        """Take what a store writes; return whether that ends the run."""
        ...


class State:
    """Registers, memory, devices, the hidden offset of dot products and modes."""

    def __init__(
        self, xlen: int, memory: Memory, registers: Registers, lines: RecentLines | None = None
    ) -> None:
        self.xlen = xlen
        self.memory = memory
        self.bytes = memory.data
        self.registers = registers
        self.offset = 0
        self.rounding = 0
        self.lines = lines
        """The lines of memory that were used lately, where misses are counted."""
        self.lowest = LOWEST
        """Where memory begins for programs."""
        self.devices: tuple[MemoryMapped, ...] = ()
        self.mstatus = FLOATS_ON | EXTENSIONS_ON

    @property
    def has_floats(self) -> bool:
        """Whether instructions of floats are switched on."""
        return bool(self.mstatus & FLOATS_ON)

    def device_at(self, address: int, size: int) -> MemoryMapped | None:
        """Return the device that has these bytes, if one has."""
        return next((d for d in self.devices if _has(d.addresses, address, size)), None)


def _has(addresses: range, address: int, size: int) -> bool:
    return addresses.start <= address and address + size <= addresses.stop
