"""Random programs, on both simulators and on QEMU's (by the package unicorn): all must agree on
registers, memory, and how many instructions there were.

Singles are kept in the lower floating-point registers and doubles in the upper, because unicorn
neither looks whether a single is boxed nor boxes all of them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fewbit.riscv.encoding import Instruction, disassemble_all, encode
from fewbit.riscv.instructions import Format, Kind, Spec, specs
from fewbit.simulators.riscv import Machine
from fewbit.simulators.riscv.state import FLOATS

pytest.importorskip("unicorn", reason="unicorn is not installed: pip install 'fewbit[dev]'")

CODE, DATA, BYTES = 0x10000, 0x20000, 256
BASE, COUNT = 8, 9
"""The registers that hold the address of data, and how often the loop goes around."""
ROUNDS = 3
PHASES = (Phase.reuse, Phase.generate)
"""Not shrinking: three simulators for each try take too long, and programs are short."""
BOX = 0xFFFFFFFF << 32


@dataclass(frozen=True)
class Case:
    xlen: int
    words: tuple[int, ...]
    integers: tuple[int, ...]
    floats: tuple[int, ...]
    data: bytes

    def __repr__(self) -> str:
        listing = disassemble_all(list(self.words), self.xlen, CODE)
        return f"{listing}\n{list(map(hex, self.integers))}\n{list(map(hex, self.floats))}"


@dataclass(frozen=True)
class Outcome:
    integers: list[int]
    floats: list[int]
    data: bytes
    instructions: int


def on_ours(case: Case, native: bool) -> Outcome:
    machine = Machine(case.xlen, 1 << 18, native=native)
    machine.load_words(CODE, case.words)
    machine.write(DATA, case.data)
    registers = machine.state.registers
    for i, value in enumerate(case.integers):
        registers[i] = value
    for i, value in enumerate(case.floats):
        registers[FLOATS + i] = value
    execution = machine.call(CODE)
    return Outcome(
        [registers[i] for i in range(32) if i not in (1, 2)],
        [registers[FLOATS + i] & _significant_bits(i) for i in range(32)],
        machine.read(DATA, BYTES),
        execution.instructions,
    )


def _significant_bits(register: int) -> int:
    """Return which bits of a floating-point register count."""
    return 0xFFFFFFFF if register < 16 else (1 << 64) - 1


def on_unicorn(case: Case) -> Outcome:
    import unicorn
    from unicorn import riscv_const as names
    from unicorn.unicorn import Uc

    mode = unicorn.UC_MODE_RISCV32 if case.xlen == 32 else unicorn.UC_MODE_RISCV64
    uc: Any = Uc(unicorn.UC_ARCH_RISCV, mode)
    uc.mem_map(CODE, 0x1000)
    uc.mem_map(DATA, 0x1000)
    uc.mem_write(CODE, b"".join(word.to_bytes(4, "little") for word in case.words))
    uc.mem_write(DATA, case.data)
    uc.reg_write(names.UC_RISCV_REG_MSTATUS, 0x6000)
    for i, value in enumerate(case.integers):
        if i:
            uc.reg_write(names.UC_RISCV_REG_X0 + i, value)
    for i, value in enumerate(case.floats):
        uc.reg_write(names.UC_RISCV_REG_F0 + i, value)
    executed = 0

    def count(*_: object) -> None:
        nonlocal executed
        executed += 1

    uc.hook_add(unicorn.UC_HOOK_CODE, count)
    uc.emu_start(CODE, CODE + 4 * (len(case.words) - 1))
    mask = (1 << case.xlen) - 1
    return Outcome(
        [uc.reg_read(names.UC_RISCV_REG_X0 + i) & mask for i in range(32) if i not in (1, 2)],
        [uc.reg_read(names.UC_RISCV_REG_F0 + i) & _significant_bits(i) for i in range(32)],
        bytes(uc.mem_read(DATA, BYTES)),
        executed + 1,
    )


INTEGERS = (
    0,
    1,
    2,
    5,
    0x7F,
    0x80,
    0x7FFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 63,
    (1 << 64) - 1,
)
SINGLES = (
    0, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x40200000, 0x7F800000, 0xFF800000,
    0x7FC00000, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x4F000000, 0xCF000000, 0x4B800001,
)  # fmt: skip
DOUBLES = (
    0, 1 << 63, 0x3FF0000000000000, 0xBFE0000000000000, 0x4004000000000000, 0x7FF0000000000000,
    0xFFF0000000000000, 0x7FF8000000000000, 1, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF,
    0x41E0000000000000, 0xC3E0000000000000, 0x47EFFFFFE0000000, 0x3810000000000000,
)  # fmt: skip


def numbers(bits: int) -> st.SearchStrategy[int]:
    mask = (1 << bits) - 1
    return st.sampled_from(INTEGERS).map(lambda n: n & mask) | st.integers(0, mask)


def quiet(value: int) -> int:
    """Unicorn is older than the rule for signalling NaNs in fmin and fmax."""
    return value | 1 << 22 if value & 0x7F800000 == 0x7F800000 and value & 0x7FFFFF else value


singles = (st.sampled_from(SINGLES) | st.integers(0, (1 << 32) - 1)).map(lambda n: BOX | quiet(n))
doubles = st.sampled_from(DOUBLES) | st.floats(width=64, allow_nan=False).map(
    lambda x: int.from_bytes(struct.pack("<d", x), "little")
)


def register(kind: str, name: str, spec: Spec, result: bool) -> st.SearchStrategy[int]:
    """Registers that an instruction may have: results leave alone what programs depend on."""
    if name in spec.floats.split():
        return st.integers(0, 15) if kind == "s" else st.integers(16, 31)
    if result:
        return st.sampled_from([i for i in range(32) if i not in (1, 2, BASE, COUNT)])
    return st.sampled_from([i for i in range(32) if i not in (1, 2)])


@st.composite
def plain(draw: st.DrawFn, spec: Spec, xlen: int) -> Instruction:
    """An instruction that does not jump, with operands that make it legal."""
    types = spec.mnemonic.split(".")[1:] or [spec.mnemonic[-1].replace("w", "s")]
    to, of = ("s" if t == "w" else t for t in (types[0], types[-1]))
    fields = spec.format.replace("(", " ").replace(")", "").split()
    operands = {
        name: draw(register(to if name == "rd" else of, name, spec, name == "rd"))
        for name in ("rd", "rs1", "rs2", "rs3")
        if name in fields
    }
    imm = 0
    match spec.format:
        case Format.LOAD | Format.STORE:
            letter = (
                spec.mnemonic.lstrip("fl")[0] if spec.format is Format.LOAD else spec.mnemonic[-1]
            )
            size = {"b": 1, "h": 2, "w": 4, "d": 8}[letter]
            imm = draw(st.integers(0, BYTES // size - 1)) * size
            operands["rs1"] = BASE
        case Format.I:
            imm = draw(st.integers(-2048, 2047))
        case Format.SHIFT:
            imm = draw(st.integers(0, 31 if xlen == 32 or spec.mnemonic.endswith("w") else 63))
        case Format.U:
            imm = draw(st.integers(0, (1 << 20) - 1))
        case _:
            pass
    modes = [0, 1, 2, 3, 4, 7] if spec.rounds and spec.mnemonic != "fcvt.d.s" else [7]
    return Instruction(spec.mnemonic, **operands, imm=imm, rounding=draw(st.sampled_from(modes)))


JUMPING = (Kind.BRANCH, Kind.JUMP)
OURS = (Kind.SYSTEM, Kind.DOT, Kind.COPROCESSOR)


@st.composite
def cases(draw: st.DrawFn, xlen: int) -> Case:
    every = [s for s in specs(xlen).values() if s.kind not in (*JUMPING, *OURS)]
    branches = [s.mnemonic for s in specs(xlen).values() if s.kind is Kind.BRANCH]
    body: list[Instruction] = []
    length = draw(st.integers(4, 24))
    for i in range(length):
        ahead = 4 * draw(st.integers(1, length - i))
        if draw(st.integers(0, 5)) == 0:
            sources = [draw(st.sampled_from([0, 5, 6, 7, 10, 11])) for _ in range(2)]
            body.append(
                Instruction(
                    draw(st.sampled_from(branches)), rs1=sources[0], rs2=sources[1], imm=ahead
                )
            )
        elif draw(st.integers(0, 15)) == 0:
            body.append(Instruction("jal", rd=5, imm=ahead))
        else:
            body.append(draw(plain(draw(st.sampled_from(every)), xlen)))
    loop = [
        *body,
        Instruction("addi", rd=COUNT, rs1=COUNT, imm=-1),
        Instruction("bne", rs1=COUNT, rs2=0, imm=-4 * (length + 1)),
        Instruction("jalr", rs1=1),
    ]
    integers = [draw(numbers(xlen)) for _ in range(32)]
    integers[0], integers[1], integers[2], integers[BASE], integers[COUNT] = 0, 0, 0, DATA, ROUNDS
    floats = [draw(singles) for _ in range(16)] + [draw(doubles) for _ in range(16)]
    words = tuple(encode(i, xlen) for i in loop)
    return Case(
        xlen, words, tuple(integers), tuple(floats), draw(st.binary(min_size=BYTES, max_size=BYTES))
    )


@pytest.mark.parametrize("xlen", [32, 64])
@settings(max_examples=40, deadline=None, phases=PHASES)
@given(st.data())
def test_random_programs(xlen: int, data: st.DataObject) -> None:
    compare(data.draw(cases(xlen)))


@pytest.mark.slow
@pytest.mark.parametrize("xlen", [32, 64])
@settings(max_examples=2000, deadline=None, phases=PHASES)
@given(st.data())
def test_many_random_programs(xlen: int, data: st.DataObject) -> None:
    compare(data.draw(cases(xlen)))


def compare(case: Case) -> None:
    wanted = on_unicorn(case)
    assert on_ours(case, native=False) == wanted
    assert on_ours(case, native=True) == wanted
