"""A processor with memory: load a program, put data, call a function, look at what it did.

machine = Machine(32, 1 << 20)
machine.load(elf)
machine.write(0x8000, data)
execution = machine.call("matmul", 0x8000, 0x9000, limit=10_000_000)
machine.read(0x9000, 64), execution.instructions, execution.histogram.kinds

Or let a program that has start-up code boot: `Machine(64, bytes, base=0x80000000, devices=[...])`,
`load`, `boot`. Memory is an array from address 0 on, of which what nobody touches takes no room.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import SymbolError, UsageError
from fewbit.riscv import elf
from fewbit.riscv.elf import Executable, Segment, Symbol
from fewbit.riscv.registers import A0, GP, RA, SP
from fewbit.simulators.riscv.code import Code
from fewbit.simulators.riscv.execution import Execution, Marks
from fewbit.simulators.riscv.interpreter import FINISHED, Interpreter
from fewbit.simulators.riscv.lines import RecentLines
from fewbit.simulators.riscv.native.processor import Processor
from fewbit.simulators.riscv.state import (
    FLOATS,
    LOWEST,
    REGISTERS,
    RETURN,
    Coprocessor,
    Memory,
    MemoryMapped,
    Registers,
    SimulationError,
    State,
)

LIMIT = 10_000_000_000
UNKNOWN = 0x5AFE57AC5AFE57AC
"""What registers hold after a reset."""
COMPILED = ("x86_64", "AMD64", "aarch64", "arm64")
"""Computers for which the native simulator is made."""


class Machine:
    """A RISC-V processor (IMFD, MiCo's dot products) with `memory_bytes` of memory from `base`.

    The stack begins at the end of memory. Devices are outside of memory. Programs run as machine
    code where that can be made (`native`), or else in Python, which does the same, slowly. With
    `lines`, misses of small data caches are counted.
    """

    def __init__(
        self,
        xlen: int,
        memory_bytes: int,
        coprocessor: Coprocessor | None = None,
        *,
        native: bool | None = None,
        lines: bool = False,
        base: int = 0,
        devices: Sequence[MemoryMapped] = (),
    ) -> None:
        if xlen not in (32, 64):
            raise UsageError(f"there is no RV{xlen} here", hint="32 or 64")
        if memory_bytes % 16 or not 2 * LOWEST <= memory_bytes <= 1 << 31:
            raise UsageError(
                f"a machine cannot have {memory_bytes} bytes of memory",
                hint=f"a multiple of 16, from {2 * LOWEST} to {1 << 31}",
            )
        if base % LOWEST or not 0 <= base <= (1 << 32) - memory_bytes:
            raise UsageError(
                f"a machine's memory cannot begin at 0x{base:x}",
                hint=f"a multiple of {LOWEST}; it must end below 0x{1 << 32:x}",
            )
        self.xlen = xlen
        self.native = platform.machine() in COMPILED if native is None else native
        self.memory: Memory = np.zeros(base + memory_bytes, np.uint8)
        self.coprocessor = coprocessor
        recent = RecentLines() if lines else None
        self.state = State(xlen, self.memory, self._registers(), recent)
        self.state.lowest = max(base, LOWEST)
        self.state.devices = tuple(devices)
        self.symbols: dict[str, Symbol] = {}
        self._entry = 0
        self.end = self.state.lowest
        """The first address behind the program: memory from here to the stack is free."""
        self._prepare(Code(xlen, [], {}))

    def _registers(self) -> Registers:
        return (ctypes.c_uint64 * REGISTERS)() if self.native else [0] * REGISTERS

    def load(self, program: bytes | Executable, clear: bool = True) -> Executable:
        """Put a linked program into memory; it takes the place of the one before.

        Memory that begins as zeros is left to the program's own start-up unless `clear`.
        """
        executable = elf.read(program) if isinstance(program, bytes) else program
        if executable.xlen != self.xlen:
            raise UsageError(f"the program is of RV{executable.xlen}, the machine of RV{self.xlen}")
        self.end = self.state.lowest
        for segment in sorted(executable.segments, key=lambda s: s.executable):
            self.write(segment.address, segment.data)
            zeros = segment.size - len(segment.data) if clear else 0
            self.write(segment.address + len(segment.data), bytes(zeros))
        self.symbols = executable.symbols
        self.end, self._entry = executable.end, executable.entry
        stretches = [(s.address, s.data) for s in executable.segments if s.executable]
        self._prepare(Code(self.xlen, stretches, executable.symbols))
        return executable

    def _prepare(self, code: Code) -> None:
        self._code = code
        self._interpreter = Interpreter(code, self.state, self.coprocessor)
        self._processor = Processor(self._interpreter) if self.native else self._interpreter

    def load_words(
        self, address: int, words: Sequence[int], symbols: Mapping[str, int] | None = None
    ) -> None:
        """Put instructions at an address, without a file; symbols by their addresses."""
        data = b"".join(word.to_bytes(4, "little") for word in words)
        named = {name: Symbol(at, 0, True) for name, at in (symbols or {}).items()}
        segment = Segment(address, data, len(data), elf.EXECUTE)
        self.load(Executable(self.xlen, address, (segment,), named))

    def address(self, symbol: str | int) -> int:
        if isinstance(symbol, int):
            return symbol
        entry = self.symbols.get(symbol)
        if entry is None:
            raise SymbolError(f"the program has no symbol '{symbol}'")
        return entry.address

    def write(self, address: int | str, data: bytes | NDArray[Any]) -> None:
        """Put bytes into memory, or an array as its bytes."""
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        self._range(self.address(address), len(raw))[:] = np.frombuffer(raw, np.uint8)

    def read(self, address: int | str, size: int) -> bytes:
        """Return bytes of memory."""
        return self._range(self.address(address), size).tobytes()

    def _range(self, address: int, size: int) -> Memory:
        lowest, end = self.state.lowest, len(self.memory)
        if size and not lowest <= address <= end - size:
            raise SimulationError(
                f"there is no memory from 0x{address:x} to 0x{address + size:x}",
                hint=f"memory is from 0x{lowest:x} to 0x{end:x}",
            )
        return self.memory[address : address + size]

    def call(self, function: str | int, *arguments: int, limit: int = LIMIT) -> Execution:
        """Call a function with up to eight integers or addresses, and run until it returns."""
        if len(arguments) > 8:
            raise UsageError("a call has at most eight arguments here")
        registers, mask = self.state.registers, (1 << self.xlen) - 1
        for i, argument in enumerate(arguments):
            registers[A0 + i] = argument & mask
        registers[RA], registers[SP] = RETURN, len(self.memory)
        if "__global_pointer$" in self.symbols:
            registers[GP] = self.symbols["__global_pointer$"].address
        start = self._code.index(self.address(function))
        if start is None:
            raise SimulationError(f"there is no code at 0x{self.address(function):x}")
        return self._run(start, limit)

    def boot(self, limit: int = LIMIT) -> Execution:
        """Start the program as a reset does, and run until a device ends it.

        Floats and coprocessors are switched off, and registers hold what no program relies on.
        """
        for number in (*range(1, 32), *range(FLOATS, REGISTERS)):
            self.state.registers[number] = UNKNOWN & (1 << self.xlen) - 1
        self.state.mstatus = self.state.rounding = self.state.offset = 0
        start = self._code.index(self._entry)
        if start is None:
            raise SimulationError(
                f"there is no code at 0x{self._entry:x}, where the program begins"
            )
        return self._run(start, limit)

    def _run(self, start: int, limit: int) -> Execution:
        counters = self._processor.counters()
        marks = Marks(counters)
        stopped = self._processor.run(start, limit, counters, marks)
        if stopped != FINISHED:
            raise self._interpreter.fail(
                stopped,
                f"the program did not end within {limit} instructions",
                "give a greater `limit`, if it is not stuck in a loop",
            )
        self._check_code()
        return Execution(
            self.state.registers[A0],
            self.state.registers[FLOATS + A0],
            counters.tally(),
            marks.finish(),
        )

    def _check_code(self) -> None:
        """Refuse a program that changed its instructions, which are decoded once."""
        for start, data in self._code.stretches:
            if self.read(start, len(data)) != data:
                raise SimulationError("the program wrote over its own code")
