"""Runs programs with the compiled handlers, and what they leave with the interpreter."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.riscv.assembler import MARK
from fewbit.riscv.encoding import DYNAMIC, Instruction, spec_of
from fewbit.riscv.instructions import Kind
from fewbit.simulators.riscv.arithmetic import signed
from fewbit.simulators.riscv.code import Code
from fewbit.simulators.riscv.execution import Counters, Marks
from fewbit.simulators.riscv.interpreter import FINISHED, Interpreter
from fewbit.simulators.riscv.lines import NO_LINE
from fewbit.simulators.riscv.native.engine import engine
from fewbit.simulators.riscv.native.handler import RECORD_BYTES, Context
from fewbit.simulators.riscv.state import FLOATS, NOWHERE

SLOW = "slow"
FLOATING = (Kind.FLOAT, Kind.FLOAT_DIVIDE, Kind.FLOAT_LOAD, Kind.FLOAT_STORE)
TURN = 1 << 28
"""So many instructions at a time: between two turns Python can be interrupted."""

RECORD = np.dtype(
    [("handler", "u8"), ("imm", "i4"), ("rd", "u1"), ("rs1", "u1"), ("rs2", "u1"), ("rs3", "u1"),
     ("starts", "i8"), ("jumps", "i8")]
)  # fmt: skip
assert RECORD.itemsize == RECORD_BYTES


class Processor:
    """A program made ready for the handlers, on the interpreter's state."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._code, self._state = interpreter.code, interpreter.state
        self._engine = engine(self._code.xlen, self._state.lines is not None)
        self._records: NDArray[Any] = np.zeros(len(self._code) + 1, RECORD)
        self._modes = (self._state.rounding, self._state.has_floats)
        self._fill()
        registers: Any = self._state.registers
        memory = self._state.memory
        self._context = Context(
            records=self._records.ctypes.data,
            code_low=self._code.low,
            code_bytes=4 * (len(self._code) - 1),
            lowest=self._state.lowest,
        )
        for places in range(4):
            self._context.space[places] = (memory.size - self._state.lowest) >> places
        self._arguments = (
            ctypes.addressof(registers), memory.ctypes.data, ctypes.addressof(self._context)
        )  # fmt: skip

    def counters(self) -> Counters:
        """Return counters for the handlers, at zero."""
        self._records["starts"] = 0
        self._records["jumps"] = 0
        context = self._context
        context.lines[:] = [NO_LINE] * len(context.lines)
        context.misses[:] = [0] * len(context.misses)
        counted = self._state.lines is not None
        return Counters(
            self._code,
            self._records["starts"],
            self._records["jumps"],
            (lambda: tuple(context.misses)) if counted else tuple[int, ...],
        )

    def run(self, index: int, limit: int, counters: Counters, marks: Marks) -> int:
        """Execute until the call returns or the limit is passed; return the index of the stop."""
        context, interpreter, state = self._context, self._interpreter, self._state
        starts, jumps, breaks = counters.starts, counters.jumps, counters.breaks
        left = limit
        self._follow_modes()
        interpreter.retired = lambda: limit - left
        while True:
            turn = min(left, TURN)
            starts[index] += 1
            context.left, context.offset = turn * RECORD_BYTES, state.offset
            first = context.records + index * RECORD_BYTES
            self._engine.run(first, *self._arguments)
            unfinished = context.left - (context.record - context.start)
            left -= turn - unfinished // RECORD_BYTES
            state.offset = context.offset
            index = (context.record - context.records) // RECORD_BYTES
            breaks[index] += 1
            if left < 0:
                return index
            if context.left < 0:
                continue
            starts[index] += 1
            left -= 1
            to = interpreter.step(index)
            self._follow_modes()
            if to is None:
                breaks[index + 1] += 1
                index += 1
                continue
            jumps[index + 1] += 1
            if to == FINISHED:
                return FINISHED
            if interpreter.mark is not None:
                interpreter.mark = marks.set(interpreter.mark)
            index = to

    def _is_float(self, instruction: Instruction) -> bool:
        return spec_of(instruction.mnemonic, self._code.xlen).kind in FLOATING

    def _follow_modes(self) -> None:
        modes = (self._state.rounding, self._state.has_floats)
        if modes != self._modes:
            self._modes = modes
            self._fill()

    def _fill(self) -> None:
        """Make the records; those of floats depend on the modes."""
        rounding, has_floats = self._modes
        addresses = self._engine.addresses
        rows: list[tuple[int, ...]] = []
        slow = (addresses[SLOW], 0, 0, 0, 0, 0)
        for index, instruction in enumerate(self._code.instructions):
            if instruction is None or (not has_floats and self._is_float(instruction)):
                rows.append(slow)
                continue
            name, imm = _handler(self._code, index, instruction, rounding)
            address = addresses.get(name)
            if address is None:
                rows.append(slow)
                continue
            rows.append((address, imm, *_registers(instruction, self._code.xlen)))
        fields = ["handler", "imm", "rd", "rs1", "rs2", "rs3"]
        filled = np.array([*rows, slow], [(name, RECORD[name]) for name in fields])
        for name in fields:
            self._records[name] = filled[name]


def _handler(code: Code, index: int, i: Instruction, rounding: int) -> tuple[str, int]:
    """Return the name of the handler (which need not exist), and its immediate."""
    name, pc = i.mnemonic, code.pcs[index]
    if name in ("lui", "auipc"):
        value = signed(i.imm << 12, 32) + (pc if name == "auipc" else 0)
        if code.xlen == 32:
            value = signed(value, 32)
        if -(1 << 31) <= value < 1 << 31:
            return "li", value
        return name, signed(i.imm << 12, 32)
    if name == "slti" and i.rd == 0 and i.imm == MARK:
        return SLOW, 0
    if name in ("jal", "jalr") or spec_of(name, code.xlen).kind is Kind.BRANCH:
        if name == "jalr":
            return ("jalr" if i.rd else "jr"), i.imm
        if not code.inside(pc + i.imm) or i.imm % 4:
            return SLOW, 0
        plain = "j" if name == "jal" and not i.rd else name
        return plain, i.imm * RECORD_BYTES // 4
    if not spec_of(name, code.xlen).rounds:
        return name, i.imm
    mode = rounding if i.rounding == DYNAMIC else i.rounding
    if name.startswith(("fcvt.w", "fcvt.l")):
        return f"{name}/{mode}", 0
    exact = name == "fcvt.d.s"
    return (name if mode == 0 or exact else SLOW), 0


def _registers(i: Instruction, xlen: int) -> tuple[int, int, int, int]:
    floats = spec_of(i.mnemonic, xlen).floats.split()
    return (
        FLOATS + i.rd if "rd" in floats else i.rd or NOWHERE,
        FLOATS + i.rs1 if "rs1" in floats else i.rs1,
        FLOATS + i.rs2 if "rs2" in floats else i.rs2,
        FLOATS + i.rs3,
    )
