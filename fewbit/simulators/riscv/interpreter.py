"""The simulator in Python: each instruction becomes a small function when first met.

It is the reference, and the fallback where nothing can be compiled. The native simulator hands it
single instructions: all that is rare, and all that goes wrong, so that errors are told in one
place.
An action does its work and returns the index of the next instruction if that is not the next one.
"""

from __future__ import annotations

from collections.abc import Callable

from fewbit.errors import Place
from fewbit.riscv.assembler import MARK
from fewbit.riscv.encoding import CSR_NAMES, DYNAMIC, Instruction, spec_of
from fewbit.riscv.instructions import Format, Kind
from fewbit.simulators.riscv.arithmetic import branches, operations, signed
from fewbit.simulators.riscv.code import Code
from fewbit.simulators.riscv.dots import dot
from fewbit.simulators.riscv.execution import Counters, Marks
from fewbit.simulators.riscv.floating import BOX, action
from fewbit.simulators.riscv.state import (
    EXTENSIONS_ON,
    FLOATS,
    NOWHERE,
    RETURN,
    Coprocessor,
    SimulationError,
    State,
)

Action = Callable[[], int | None]

FINISHED = -1
_SIZES = {"b": 1, "h": 2, "w": 4, "d": 8}


class Interpreter:
    """Executes the instructions of a program on a state."""

    def __init__(self, code: Code, state: State, coprocessor: Coprocessor | None) -> None:
        self.code = code
        self.state = state
        self.coprocessor = coprocessor
        self.retired: Callable[[], int] = lambda: 0
        """How many instructions there were until now, for programs that ask."""
        self.mark: int | None = None
        """The mark that was just met, until someone takes note of it."""
        self._actions: list[Action | None] = [None] * len(code)
        self._operations = operations(code.xlen)
        self._branches = branches(code.xlen)

    def step(self, index: int) -> int | None:
        """Execute one instruction."""
        act = self._actions[index]
        if act is None:
            act = self._actions[index] = self._make(index)
        return act()

    def counters(self) -> Counters:
        lines = self.state.lines
        if lines is None:
            return Counters(self.code)
        lines.clear()
        return Counters(self.code, misses=lambda: tuple(lines.misses))

    def run(self, index: int, limit: int, counters: Counters, marks: Marks) -> int:
        """Execute until the call returns or the limit is passed; the index where it stopped."""
        starts, jumps, actions = counters.starts, counters.jumps, self._actions
        left, start = limit, index
        starts[index] += 1
        self.retired = lambda: limit - left + index - start
        while True:
            act = actions[index]
            if act is None:
                act = actions[index] = self._make(index)
            to = act()
            index += 1
            if to is None:
                continue
            jumps[index] += 1
            left -= index - start
            if to == FINISHED:
                return FINISHED
            if self.mark is not None:
                self.mark = marks.set(self.mark)
            starts[to] += 1
            start = index = to
            if left < 0:
                counters.breaks[index] += 1
                return index

    def fail(self, index: int, what: str, hint: str | None = None) -> SimulationError:
        pc = self.code.pcs[index]
        name = self.code.function_at(pc)
        where = f"at 0x{pc:x}" + (f" in '{name}'" if name else "")
        return SimulationError(
            f"{what}, {where}", place=Place(op=self.code.describe(index)), hint=hint
        )

    def _make(self, index: int) -> Action:
        instruction = self.code.instructions[index]
        if instruction is None:
            return lambda: self._illegal(index)
        match spec_of(instruction.mnemonic, self.code.xlen).kind:
            case Kind.BRANCH | Kind.JUMP:
                return self._transfer(index, instruction)
            case Kind.LOAD | Kind.FLOAT_LOAD:
                return self._load(index, instruction)
            case Kind.STORE | Kind.FLOAT_STORE:
                return self._store(index, instruction)
            case Kind.FLOAT | Kind.FLOAT_DIVIDE:
                return self._float(index, instruction)
            case Kind.DOT:
                return self._dot(instruction)
            case Kind.COPROCESSOR:
                return self._command(index, instruction)
            case Kind.SYSTEM:
                return self._system(index, instruction)
            case _:
                return self._integer(index, instruction)

    def _mark(self, number: int, index: int) -> int:
        self.mark = number
        return index + 1

    def _illegal(self, index: int) -> int:
        pc = self.code.pcs[index]
        if not self.code.inside(pc):
            raise self.fail(index, "the program ran past the end of its code")
        raise self.fail(
            index,
            f"0x{self.code.words[index]:08x} is not an instruction of RV{self.code.xlen}",
            "compressed instructions and atomics are not known",
        )

    def _integer(self, index: int, i: Instruction) -> Action:
        r, rd, rs1, rs2 = self.state.registers, i.rd or NOWHERE, i.rs1, i.rs2
        mask = (1 << self.code.xlen) - 1
        if i.mnemonic in ("lui", "auipc"):
            base = self.code.pcs[index] if i.mnemonic == "auipc" else 0
            value = base + signed(i.imm << 12, 32) & mask
            return lambda: r.__setitem__(rd, value)
        if i.mnemonic == "slti" and i.rd == 0 and i.imm == MARK:
            return lambda: self._mark(r[rs1], index)
        if spec_of(i.mnemonic, self.code.xlen).format is Format.R:
            binary = self._operations[i.mnemonic]
            return lambda: r.__setitem__(rd, binary(r[rs1], r[rs2]))
        name = i.mnemonic
        plain = "sltu" if name == "sltiu" else name[:-2] + "w" if name.endswith("iw") else name[:-1]
        binary, constant = self._operations[plain], i.imm & mask
        return lambda: r.__setitem__(rd, binary(r[rs1], constant))

    def _transfer(self, index: int, i: Instruction) -> Action:
        r, rd, rs1, rs2 = self.state.registers, i.rd or NOWHERE, i.rs1, i.rs2
        pc, mask = self.code.pcs[index], (1 << self.code.xlen) - 1
        if i.mnemonic == "jalr":

            def jalr() -> int:
                target = self._target(index, r[rs1] + i.imm & mask & ~1)
                r[rd] = pc + 4
                return target

            return jalr
        if i.mnemonic == "jal":

            def jal() -> int:
                target = self._target(index, pc + i.imm & mask)
                r[rd] = pc + 4
                return target

            return jal
        holds = self._branches[i.mnemonic]
        return lambda: self._target(index, pc + i.imm & mask) if holds(r[rs1], r[rs2]) else None

    def _target(self, index: int, pc: int) -> int:
        target = self.code.index(pc)
        if target is not None:
            return target
        if pc == RETURN:
            return FINISHED
        if pc % 4 and self.code.inside(pc):
            raise self.fail(index, f"the program jumps to 0x{pc:x}, between two instructions")
        raise self.fail(index, f"the program jumps to 0x{pc:x}, where there is no code")

    def _check(self, index: int, address: int, size: int) -> int:
        """Return an address, after a look whether there is memory."""
        lowest, end = self.state.lowest, len(self.state.memory)
        if not lowest <= address <= end - size:
            raise self.fail(
                index,
                f"there is no memory at 0x{address:x}",
                f"memory is from 0x{lowest:x} to 0x{end:x}",
            )
        if address % size:
            raise self.fail(index, f"the address 0x{address:x} is no multiple of {size}")
        if self.state.lines is not None:
            self.state.lines.touch(address)
        return address

    def _load(self, index: int, i: Instruction) -> Action:
        state, r, rs1, imm = self.state, self.state.registers, i.rs1, i.imm
        memory, mask = state.bytes, (1 << self.code.xlen) - 1
        floating = i.mnemonic.startswith("f")
        letters = i.mnemonic.lstrip("fl")
        size = _SIZES[letters[0]]
        rd = FLOATS + i.rd if floating else i.rd or NOWHERE
        unsigned = letters.endswith("u") or floating
        box = BOX if i.mnemonic == "flw" else 0

        def load() -> None:
            at = r[rs1] + imm & mask
            device = state.device_at(at, size) if state.devices else None
            if device is None:
                self._check(index, at, size)
                value = int.from_bytes(memory[at : at + size], "little")
            else:
                value = device.load(at, size)
            r[rd] = (value if unsigned else signed(value, 8 * size) & mask) | box

        return self._floating(index, load) if floating else load

    def _store(self, index: int, i: Instruction) -> Action:
        state, r, rs1, imm, memory = (
            self.state, self.state.registers, i.rs1, i.imm, self.state.bytes,
        )  # fmt: skip
        size = _SIZES[i.mnemonic[-1]]
        rs2 = FLOATS + i.rs2 if i.mnemonic.startswith("f") else i.rs2
        mask, addresses = (1 << 8 * size) - 1, (1 << self.code.xlen) - 1

        def store() -> int | None:
            at = r[rs1] + imm & addresses
            device = state.device_at(at, size) if state.devices else None
            if device is not None:
                return FINISHED if device.store(at, size, r[rs2] & mask) else None
            self._check(index, at, size)
            memory[at : at + size] = (r[rs2] & mask).to_bytes(size, "little")
            return None

        return self._floating(index, store) if i.mnemonic.startswith("f") else store

    def _floating(self, index: int, act: Action) -> Action:
        """Return what an instruction of floats does: it is illegal where they are switched off."""

        def check() -> int | None:
            if not self.state.has_floats:
                raise self.fail(index, "floats are switched off", "set FS in mstatus")
            return act()

        return check

    def _float(self, index: int, i: Instruction) -> Action:
        floats = spec_of(i.mnemonic, self.code.xlen).floats.split()
        r, state = self.state.registers, self.state
        rd = FLOATS + i.rd if "rd" in floats else i.rd or NOWHERE
        rs1, rs2, rs3 = (
            (FLOATS + i.rs1 if "rs1" in floats else i.rs1),
            FLOATS + i.rs2,
            FLOATS + i.rs3,
        )
        act = action(i.mnemonic, self.code.xlen)

        def float_() -> None:
            mode = state.rounding if i.rounding == DYNAMIC else i.rounding
            if mode > 4:
                raise self.fail(index, f"there is no rounding mode {mode}")
            r[rd] = act(r[rs1], r[rs2], r[rs3], mode)

        return self._floating(index, float_)

    def _dot(self, i: Instruction) -> Action:
        r, state, xlen, rd = self.state.registers, self.state, self.code.xlen, i.rd or NOWHERE
        a, b = (int(width) for width in i.mnemonic.removeprefix("dot").split("x"))

        def dots() -> None:
            total, state.offset = dot(a, b, r[i.rs1], r[i.rs2], state.offset, xlen)
            r[rd] = total & (1 << xlen) - 1

        return dots

    def _command(self, index: int, i: Instruction) -> Action:
        r, state = self.state.registers, self.state
        rd = i.rd or NOWHERE

        def command() -> None:
            if self.coprocessor is None:
                raise self.fail(index, "there is no coprocessor for this command")
            if not state.mstatus & EXTENSIONS_ON:
                raise self.fail(index, "coprocessors are switched off", "set XS in mstatus")
            first = r[i.rs1] if i.funct3 & 2 else 0
            second = r[i.rs2] if i.funct3 & 1 else 0
            result = self.coprocessor.execute(i.funct7, first, second, state.memory)
            if i.funct3 & 4:
                r[rd] = (result or 0) & (1 << self.code.xlen) - 1

        return command

    def _system(self, index: int, i: Instruction) -> Action:
        if i.mnemonic == "fence":
            return lambda: None
        if i.mnemonic == "ecall":
            return lambda: FINISHED
        if i.mnemonic == "ebreak":
            return lambda: self._break(index)
        r, rd = self.state.registers, i.rd or NOWHERE

        def csr() -> None:
            reads = i.rd != 0 or not i.mnemonic.startswith("csrrw")
            old = self._read_csr(index, i.imm) if reads else 0
            operand = i.rs1 if i.mnemonic.endswith("i") else r[i.rs1]
            writes = i.rs1 != 0 or i.mnemonic.startswith("csrrw")
            if writes:
                verb = i.mnemonic[4]
                new = operand if verb == "w" else old | operand if verb == "s" else old & ~operand
                self._write_csr(index, i.imm, new)
            r[rd] = old

        return csr

    def _break(self, index: int) -> int:
        raise self.fail(index, "the program stopped itself (ebreak)")

    def _read_csr(self, index: int, number: int) -> int:
        match CSR_NAMES.get(number):
            case "fflags" | "mhartid":
                return 0
            case "mstatus":
                return self.state.mstatus
            case "frm":
                return self.state.rounding
            case "fcsr":
                return self.state.rounding << 5
            case "cycle" | "instret" | "mcycle" | "minstret":
                return self.retired() & (1 << self.code.xlen) - 1
            case "cycleh" | "instreth" | "mcycleh" | "minstreth":
                return self.retired() >> 32
            case _:
                raise self.fail(index, f"there is no CSR 0x{number:x}")

    def _write_csr(self, index: int, number: int, value: int) -> None:
        match CSR_NAMES.get(number):
            case "fflags" | "mtvec":
                return  # what a processor would jump to its handler for is an error here
            case "mstatus":
                self.state.mstatus = value
            case "frm":
                self.state.rounding = value & 7
            case "fcsr":
                self.state.rounding = value >> 5 & 7
            case _:
                raise self.fail(index, f"the CSR 0x{number:x} cannot be written")
