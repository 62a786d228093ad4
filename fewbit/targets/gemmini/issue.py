"""RV64 code that sends streams: one function each, its buffers as arguments.

Operands are read from a table, moved by the address of their buffer where they point into one, and
sent with a RoCC instruction; a fence at the end waits for the accelerator. Straight-line code takes
four instructions a command, where constants built in registers would take a dozen.

A run begins with `START`, as programs written with gemmini.h do: what the accelerator remembers of
address translation may be another program's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fewbit.riscv.assembler import Assembler
from fewbit.simulators.gemmini.command import Command
from fewbit.simulators.gemmini.commands import Flush
from fewbit.simulators.gemmini.records import record_of

START: tuple[Command, ...] = (Flush(skip=0),)
"""What a run sends before any stream."""
START_SYMBOL = "stream.start"
OPERANDS = "gemmini.operands"
"""The table of all operands."""
REACH = 2048
"""Bytes behind a register that a load reaches."""


@dataclass
class Issuer:
    """Collects functions and the table that they read."""

    assembler: Assembler = field(default_factory=lambda: Assembler(64))
    operands: list[int] = field(default_factory=list[int])

    def add(self, symbol: str, stream: Sequence[Command], buffers: Sequence[str]) -> None:
        """Add a function that sends a stream; `buffers` are its arguments, in order."""
        asm = self.assembler
        registers = {buffer: f"a{number}" for number, buffer in enumerate(buffers)}
        asm.symbol(symbol)
        asm.la("t0", OPERANDS)
        asm.li("t1", 8 * len(self.operands))
        asm.add("t0", "t0", "t1")
        place = 0
        for command in stream:
            record = record_of(command)
            used: list[str] = []
            for register, operand, buffer in zip(
                ("t1", "t2"), record.operands, record.buffers, strict=True
            ):
                if buffer is not None and operand == 0:
                    used.append(registers[buffer])
                    continue
                if operand == 0:
                    used.append("zero")
                    continue
                if place == REACH:
                    asm.addi("t0", "t0", REACH - 8)
                    place = 8
                self.operands.append(operand)
                asm.ld(register, place, "t0")
                place += 8
                if buffer is not None:
                    asm.add(register, register, registers[buffer])
                used.append(register)
            asm.rocc(record.funct, used[0], used[1])
        asm.fence()
        asm.ret()

    def table_ir(self) -> str:
        """Return the table in LLVM IR, a symbol that objects linked with it see."""
        values = ", ".join(f"i64 {operand}" for operand in self.operands)
        return f"@{OPERANDS} = hidden constant [{len(self.operands)} x i64] [{values}], align 64"
