"""The first instructions of a program, its traps, its end, and its clock, in assembly.

The first hart runs; others wait. Floats and the accelerator are switched on in mstatus where the
program has any, memory that begins as zeros is cleared, and `main` is called. A trap is reported
and ends the program; one more trap, as of a UART that is not there, ends it without a word.
"""

from __future__ import annotations

from fewbit.codegen.bare_metal.processor import Processor
from fewbit.riscv.assembler import Assembler
from fewbit.targets.bare_metal.board import Board

START, STACK_TOP, TO_HOST, FROM_HOST = "_start", "fewbit_stack_top", "tohost", "fromhost"
ZEROS, ZEROS_END = "fewbit_zeros", "fewbit_zeros_end"
CYCLES, REPORT_TRAP = "fewbit_cycles", "fewbit_report_trap"
FLOATS_ON, EXTENSIONS_ON = 0x6000, 0x18000
"""FS and XS in mstatus: dirty."""
TEST_DEVICE_PASS, TEST_DEVICE_FAIL = 0x5555, 0x3333
_WAIT_FOR_INTERRUPT = 0x10500073


def start_object(processor: Processor, board: Board, has_coprocessor: bool) -> bytes:
    """Return the object that a linker puts first."""
    a = Assembler(processor.xlen)
    _start(a, processor, has_coprocessor)
    _leave(a, board)
    _trap(a)
    _cycles(a)
    return a.object(processor.float_abi)


def _start(a: Assembler, processor: Processor, has_coprocessor: bool) -> None:
    a.symbol(START)
    a.csrrs("t0", "mhartid", "zero")
    a.bnez("t0", "park")
    a.la("t0", "trap")
    a.csrrw("zero", "mtvec", "t0")
    modes = (FLOATS_ON if processor.floats else 0) | (EXTENSIONS_ON if has_coprocessor else 0)
    if modes:
        a.li("t0", modes)
        a.csrrs("zero", "mstatus", "t0")
    if processor.floats:
        a.csrrw("zero", "fcsr", "zero")
    a.la("t0", ZEROS)
    a.la("t1", ZEROS_END)
    a.label("clear")
    a.bgeu("t0", "t1", "cleared")
    a.sw("zero", 0, "t0")
    a.addi("t0", "t0", 4)
    a.j("clear")
    a.label("cleared")
    a.la("sp", STACK_TOP)
    a.call("main")


def _leave(a: Assembler, board: Board) -> None:
    """End with the code in a0: 0 where all is as it should be."""
    a.label("leave")
    a.mv("s0", "a0")
    a.slli("a0", "a0", 1)
    a.ori("a0", "a0", 1)
    a.la("t0", TO_HOST)
    if a.xlen == 64:
        a.sd("a0", 0, "t0")
    else:
        a.sw("a0", 0, "t0")
        a.sw("zero", 4, "t0")
    if board.test_device is not None:
        a.li("t0", board.test_device)
        a.slli("t1", "s0", 16)
        a.li("t2", TEST_DEVICE_FAIL)
        a.or_("t1", "t1", "t2")
        a.bnez("s0", "tell")
        a.li("t1", TEST_DEVICE_PASS)
        a.label("tell")
        a.sw("t1", 0, "t0")
    a.bnez("s0", "fail")
    for name in ("pass", "fail"):
        a.symbol(name)
        a.j(name)
    a.label("park")
    a.word(_WAIT_FOR_INTERRUPT)
    a.j("park")


def _trap(a: Assembler) -> None:
    a.symbol("trap")
    a.la("t0", "fail")
    a.csrrw("zero", "mtvec", "t0")
    a.csrrs("a0", "mcause", "zero")
    a.csrrs("a1", "mepc", "zero")
    a.csrrs("a2", "mtval", "zero")
    a.la("sp", STACK_TOP)
    a.call(REPORT_TRAP)
    a.j("leave")


def _cycles(a: Assembler) -> None:
    """Return 64 bits of mcycle; on RV32, read until the upper half stays."""
    a.symbol(CYCLES)
    if a.xlen == 64:
        a.csrrs("a0", "mcycle", "zero")
        return a.ret()
    a.label("again")
    a.csrrs("a1", "mcycleh", "zero")
    a.csrrs("a0", "mcycle", "zero")
    a.csrrs("t0", "mcycleh", "zero")
    a.bne("a1", "t0", "again")
    return a.ret()
