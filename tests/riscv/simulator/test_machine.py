"""What a machine does besides arithmetic: calls, counts, errors, commands. On both simulators."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from fewbit.errors import Error, SymbolError, UsageError
from fewbit.riscv.assembler import Assembler
from fewbit.riscv.encoding import ROUNDING
from fewbit.simulators.riscv import Machine, SimulationError
from fewbit.simulators.riscv.state import FLOATS, Memory

CODE = 0x1000
pytestmark = pytest.mark.parametrize("native", [False, True])


def machine(
    xlen: int, native: bool, write: Callable[[Assembler], None], coprocessor: Adder | None = None
) -> Machine:
    made = Machine(xlen, 1 << 16, coprocessor, native=native)
    assembler = Assembler(xlen)
    write(assembler)
    symbols = {name: CODE + 4 * assembler.labels[name] for name in assembler.symbols}
    made.load_words(CODE, assembler.words(), symbols)
    return made


def sums(a: Assembler) -> None:
    """The sum of the words from a0 to a1, by a function for each word."""
    a.symbol("sums")
    a.mv("s0", "ra")
    a.li("t1", 0)
    a.label("loop")
    a.call("one")
    a.addi("a0", "a0", 4)
    a.bne("a0", "a1", "loop")
    a.mv("a0", "t1")
    a.jr("s0")
    a.symbol("one")
    a.lw("t0", 0, "a0")
    a.add("t1", "t1", "t0")
    a.ret()


@pytest.mark.parametrize("xlen", [32, 64])
def test_counts(native: bool, xlen: int) -> None:
    made = machine(xlen, native, sums)
    numbers = np.arange(100, dtype=np.int32)
    made.write(0x4000, numbers)
    execution = made.call("sums", 0x4000, 0x4000 + numbers.nbytes)
    assert execution.result == numbers.sum()
    assert execution.instructions == 2 + 100 * 7 + 2
    assert execution.histogram.kinds == {
        "alu": 2 + 100 * 3 + 1,
        "load": 100,
        "branch": 100,
        "jump": 201,
    }
    assert execution.histogram.taken == 99
    assert execution.histogram["lw"] == execution.histogram["load"] == 100
    assert {name: h.instructions for name, h in execution.by_function.items()} == {
        "sums": 404,
        "one": 300,
    }
    assert execution.tally.histogram(CODE, CODE + 8).instructions == 2


def test_counts_begin_anew(native: bool) -> None:
    made = machine(32, native, sums)
    assert [made.call("sums", 0x4000, 0x4008).instructions for _ in range(3)] == [18] * 3


def test_marks_tell_layers_apart(native: bool) -> None:
    def layers(a: Assembler) -> None:
        a.symbol("layers")
        a.mv("s0", "ra")
        for layer in (1, 2, 1):
            a.li("t0", layer)
            a.mark("t0")
            for _ in range(layer):
                a.call("work")
        a.jr("s0")
        a.symbol("work")
        a.mul("a0", "a0", "a0")
        a.ret()

    execution = machine(64, native, layers).call("layers")
    assert {mark: h["mul"] for mark, h in execution.by_mark.items()} == {1: 2, 2: 2}
    total = sum(h.instructions for h in execution.by_mark.values())
    assert execution.instructions == total + 3


def jump_nowhere(a: Assembler) -> None:
    a.li("t0", 0x9000)
    a.jr("t0")


def jump_between(a: Assembler) -> None:
    a.li("t0", CODE + 2)
    a.jr("t0")


def store_into_code(a: Assembler) -> None:
    a.li("t0", CODE)
    a.sw("t0", 0, "t0")
    a.ret()


ERRORS: dict[str, tuple[Callable[[Assembler], None], str]] = {
    "illegal": (
        lambda a: a.word(0xFFFFFFFF),
        "0xffffffff is not an instruction of RV32, at 0x1000",
    ),
    "end": (lambda a: a.nop(), "ran past the end of its code, at 0x1004"),
    "null": (lambda a: a.lw("a0", 0, "zero"), "no memory at 0x0, at 0x1000"),
    "beyond": (lambda a: (a.li("t0", 0x10000), a.sb("t0", 0, "t0"))[0], "no memory at 0x10000"),
    "negative": (lambda a: a.lw("a0", -4, "zero"), "no memory at 0xfffffffc"),
    "misaligned": (lambda a: a.lh("a0", -3, "sp"), "0xfffd is no multiple of 2, at 0x1000"),
    "misaligned double": (lambda a: a.fld("fa0", -12, "sp"), "0xfff4 is no multiple of 8"),
    "nowhere": (jump_nowhere, "jumps to 0x9000, where there is no code"),
    "between": (jump_between, "jumps to 0x1002, between two instructions"),
    "loop": (lambda a: a.j(0), "did not end within 1000 instructions"),
    "break": (lambda a: a.ebreak(), "ebreak"),
    "csr": (lambda a: a.csrrs("a0", 0x123, 0), "no CSR 0x123"),
    "command": (lambda a: a.rocc(1, "a0", "a1"), "no coprocessor"),
    "own code": (store_into_code, "wrote over its own code"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_and_where(native: bool, name: str) -> None:
    write, message = ERRORS[name]
    with pytest.raises(SimulationError, match=message):
        machine(32, native, write).call(CODE, limit=1000)


def test_errors_name_the_function_and_the_instruction(native: bool) -> None:
    with pytest.raises(SimulationError, match="in 'one'") as caught:
        machine(32, native, sums).call("sums", 0x2, 0x6)
    assert caught.value.place.op == "lw t0, 0(a0)"


def test_wrong_uses(native: bool) -> None:
    made = machine(32, native, sums)
    with pytest.raises(SymbolError, match="no symbol 'nothing'"):
        made.call("nothing")
    with pytest.raises(SimulationError, match="no code at 0x4000"):
        made.call(0x4000)
    with pytest.raises(SimulationError, match="no memory from 0xfffe"):
        made.write(0xFFFE, b"1234")
    with pytest.raises(UsageError, match="at most eight"):
        made.call("sums", *range(9))
    with pytest.raises(UsageError, match="RV16"):
        Machine(16, 1 << 16, native=native)
    with pytest.raises(Error, match="not an ELF file"):
        made.load(b"hello")


class Adder:
    """A coprocessor that adds its operands, and leaves them in memory."""

    def execute(self, funct: int, rs1: int, rs2: int, memory: Memory) -> int | None:
        memory[0x4000:0x4008] = np.array([rs1 + rs2 + funct], "<u8").view(np.uint8)
        return rs1 + rs2 + funct if funct == 7 else None


def test_commands_go_to_the_coprocessor(native: bool) -> None:
    def commands(a: Assembler) -> None:
        a.rocc(2, "a0", "a1")
        a.ld("s1", 0, "a2")
        a.rocc(7, "a0", "a1", "a0")
        a.add("a0", "a0", "s1")
        a.ret()

    made = machine(64, native, commands, Adder())
    execution = made.call(CODE, 100, 20, 0x4000)
    assert execution.result == 122 + 127
    assert execution.histogram["coprocessor"] == 2


def test_unboxed_singles_are_nan(native: bool) -> None:
    def both(a: Assembler) -> None:
        a.fadd_s("fa0", "fa1", "fa1")
        a.fsgnj_s("fa2", "fa1", "fa3")
        a.fclass_s("a0", "fa1")
        a.fmv_x_w("a1", "fa1")
        a.ret()

    made = machine(32, native, both)
    made.state.registers[FLOATS + 11] = 0x3F800000
    execution = made.call(CODE)
    assert execution.float_result == 0xFFFFFFFF7FC00000
    assert execution.result == 1 << 9
    assert made.state.registers[FLOATS + 12] == 0xFFFFFFFF7FC00000
    assert made.state.registers[11] == 0x3F800000


@pytest.mark.parametrize(("mode", "quotient", "whole"), [
    ("rne", 0x3EAAAAAB, 2), ("rtz", 0x3EAAAAAA, 2), ("rdn", 0x3EAAAAAA, 2),
    ("rup", 0x3EAAAAAB, 3), ("rmm", 0x3EAAAAAB, 3),
])  # fmt: skip
@pytest.mark.parametrize("dynamic", [False, True])
def test_rounding_modes(native: bool, mode: str, quotient: int, whole: int, dynamic: bool) -> None:
    """1 / 3 as a single, and 2.5 as a whole number."""

    def divides(a: Assembler) -> None:
        chosen = "dyn" if dynamic else mode
        a.csrrwi("zero", "frm", ROUNDING.index(mode) if dynamic else 0)
        a.fdiv_s("fa0", "fa1", "fa2", rounding=chosen)
        a.fcvt_w_s("a0", "fa3", rounding=chosen)
        a.csrrwi("a1", "frm", 0)
        a.ret()

    made = machine(32, native, divides)
    for register, bits in ((11, 0x3F800000), (12, 0x40400000), (13, 0x40200000)):
        made.state.registers[FLOATS + register] = 0xFFFFFFFF00000000 | bits
    execution = made.call(CODE)
    assert execution.float_result & 0xFFFFFFFF == quotient
    assert execution.result == whole
    assert made.state.registers[11] == (ROUNDING.index(mode) if dynamic else 0)


def test_programs_can_count_themselves(native: bool) -> None:
    def counts(a: Assembler) -> None:
        a.csrrs("a0", "instret", "zero")
        a.nop()
        a.nop()
        a.csrrs("a1", "instret", "zero")
        a.sub("a0", "a1", "a0")
        a.ecall()

    assert machine(32, native, counts).call(CODE).result == 3


def test_speed(native: bool) -> None:
    """Far below what was measured, so that a busy computer does not matter."""
    made = machine(32, native, sums)
    words = 10_000 if native else 500
    begin = time.process_time()
    for _ in range(20 if native else 1):
        made.call("sums", 0x2000, 0x2000 + 4 * words)
    spent = time.process_time() - begin
    instructions = 7 * words * (20 if native else 1)
    assert instructions / spent > (30e6 if native else 1e4)
