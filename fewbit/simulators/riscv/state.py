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


class State:
    """Registers, memory, the hidden offset of dot products and the rounding mode."""

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
