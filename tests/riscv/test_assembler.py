from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fewbit.errors import SymbolError, UsageError
from fewbit.riscv import elf
from fewbit.riscv.assembler import Assembler
from fewbit.riscv.encoding import disassemble
from fewbit.simulators.riscv import Machine
from fewbit.toolchain.lld import lld


def listing(assembler: Assembler) -> list[str]:
    return [disassemble(word, assembler.xlen) for word in assembler.words()]


def test_operands_in_the_order_of_assembly() -> None:
    a = Assembler(32)
    a.lw("t0", -4, "a0")
    a.sw("t0", 8, "sp")
    a.and_("a0", "a1", "x12")
    a.fcvt_w_s("a0", "fa0", rounding="rtz")
    a.csrrw("zero", "frm", "a0")
    assert listing(a) == [
        "lw t0, -4(a0)",
        "sw t0, 8(sp)",
        "and a0, a1, a2",
        "fcvt.w.s a0, fa0, rtz",
        "csrrw zero, frm, a0",
    ]


def test_labels_before_and_behind() -> None:
    a = Assembler(64)
    back, ahead = a.label(a.fresh("back")), a.fresh("ahead")
    a.beqz("a0", ahead)
    a.j(back)
    a.label(ahead)
    a.ret()
    assert listing(a)[:2] == ["beq a0, zero, 8", "jal zero, -4"]


@pytest.mark.parametrize("xlen", [32, 64])
@given(st.data())
def test_constants(xlen: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(1 << xlen - 1), (1 << xlen) - 1))
    a = Assembler(xlen)
    a.li("a0", value)
    a.ret()
    assert len(a) <= (3 if xlen == 32 else 9)
    machine = Machine(xlen, 1 << 16, native=False)
    machine.load_words(0x1000, a.words())
    assert machine.call(0x1000).result == value % (1 << xlen)


def test_mistakes_are_told() -> None:
    a = Assembler(32)
    with pytest.raises(AttributeError, match="no 'addw'"):
        a.addw("a0", "a0", "a0")
    with pytest.raises(UsageError, match="3 operands"):
        a.add("a0", "a1")
    with pytest.raises(UsageError, match="not an integer register"):
        a.add("a0", "a1", "fa2")
    with pytest.raises(UsageError, match="a number belongs"):
        a.addi("a0", "a1", "a2")
    a.label("here")
    with pytest.raises(SymbolError, match="defined twice"):
        a.label("here")
    a.j("nowhere")
    with pytest.raises(SymbolError, match="'nowhere' is not defined"):
        a.words()


@pytest.mark.parametrize("xlen", [32, 64])
def test_objects_are_linked_by_lld(xlen: int, tmp_path: Path) -> None:
    one, two = Assembler(xlen), Assembler(xlen)
    one.symbol("start")
    one.addi("sp", "sp", -16)
    one.sw("ra", 0, "sp")
    one.call("double")
    one.la("t0", "number")
    one.lw("t0", 0, "t0")
    one.add("a0", "a0", "t0")
    one.lw("ra", 0, "sp")
    one.addi("sp", "sp", 16)
    one.ret()
    two.symbol("double")
    two.add("a0", "a0", "a0")
    two.ret()
    two.symbol("number")
    two.word(1000)
    paths = [tmp_path / "one.o", tmp_path / "two.o"]
    for path, assembler in zip(paths, (one, two), strict=True):
        path.write_bytes(assembler.object())
    made = tmp_path / "made"
    lld(["-o", str(made), "-e", "start", *map(str, paths)])

    program = elf.read(made.read_bytes())
    assert program.xlen == xlen
    assert program.entry == program.symbols["start"].address
    assert program.symbols["double"].size == 8
    machine = Machine(xlen, 1 << 20, native=False)
    machine.load(program)
    execution = machine.call("start", 21)
    assert execution.result == 1042
    assert {name: h.instructions for name, h in execution.by_function.items()} == {
        "start": len(one),
        "double": 2,
    }
