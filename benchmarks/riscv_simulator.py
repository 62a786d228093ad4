"""How fast the RISC-V simulator is: millions of instructions a second, natively and in Python.

python benchmarks/riscv_simulator.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from fewbit.riscv.assembler import Assembler
from fewbit.simulators.riscv import Machine

A, B, OUT, SIZE = 0x10000, 0x20000, 0x30000, 64


def matmul(width: int) -> Callable[[Assembler], None]:
    """SIZE³ with a dot product for each word: three loops, nothing unrolled."""

    def write(a: Assembler) -> None:
        words = SIZE * width // a.xlen
        bytes_ = words * a.xlen // 8
        load = a.lw if a.xlen == 32 else a.ld
        a.li("s0", A)
        a.li("s1", OUT)
        a.li("s2", A + SIZE * bytes_)
        a.label("rows")
        a.li("s3", B)
        a.li("s4", B + SIZE * bytes_)
        a.label("columns")
        a.mv("t0", "s0")
        a.addi("t5", "s3", bytes_)
        a.li("t4", 0)
        a.label("inner")
        load("t1", 0, "t0")
        load("t2", 0, "s3")
        a.addi("t0", "t0", a.xlen // 8)
        a.addi("s3", "s3", a.xlen // 8)
        a.emit(f"dot{width}x{width}", "t3", "t1", "t2")
        a.add("t4", "t4", "t3")
        a.bne("s3", "t5", "inner")
        a.sw("t4", 0, "s1")
        a.addi("s1", "s1", 4)
        a.bne("s3", "s4", "columns")
        a.addi("s0", "s0", bytes_)
        a.bne("s0", "s2", "rows")
        a.ret()

    return write


def floats(a: Assembler) -> None:
    """y = y · x + x over singles, as activations are computed."""
    a.li("s0", A)
    a.li("s1", A + 0x8000)
    a.label("loop")
    a.flw("fa0", 0, "s0")
    a.fmadd_s("fa1", "fa1", "fa0", "fa0")
    a.fmul_s("fa2", "fa1", "fa0")
    a.fcvt_w_s("t0", "fa2", rounding="rne")
    a.sw("t0", 0, "s0")
    a.addi("s0", "s0", 4)
    a.bne("s0", "s1", "loop")
    a.ret()


def calls(a: Assembler) -> None:
    """Fibonacci's numbers by recursion: calls, returns and the stack."""
    a.li("a0", 18)
    a.symbol("fib")
    a.slti("t0", "a0", 2)
    a.bnez("t0", "end")
    a.addi("sp", "sp", -16)
    a.sw("ra", 0, "sp")
    a.sw("a0", 4, "sp")
    a.addi("a0", "a0", -1)
    a.emit("jal", "ra", "fib")
    a.lw("t0", 4, "sp")
    a.sw("a0", 8, "sp")
    a.addi("a0", "t0", -2)
    a.emit("jal", "ra", "fib")
    a.lw("t0", 8, "sp")
    a.add("a0", "a0", "t0")
    a.lw("ra", 0, "sp")
    a.addi("sp", "sp", 16)
    a.label("end")
    a.ret()


PROGRAMS: dict[str, Callable[[Assembler], None]] = {
    **{f"matmul {SIZE}³ {width}x{width}": matmul(width) for width in (8, 4, 2, 1)},
    "floats": floats,
    "calls": calls,
}


def speed(xlen: int, write: Callable[[Assembler], None], native: bool) -> tuple[int, float]:
    machine = Machine(xlen, 1 << 20, native=native)
    assembler = Assembler(xlen)
    write(assembler)
    machine.load_words(0x1000, assembler.words())
    machine.write(A, np.random.default_rng(0).integers(0, 128, 0x18000, np.uint8))
    best, instructions = float("inf"), 0
    for _ in range(40 if native else 1):
        begin = time.process_time()
        execution = machine.call(0x1000)
        best = min(best, time.process_time() - begin)
        instructions = execution.instructions
    return instructions, instructions / best / 1e6


def main() -> None:
    print("| program | RV | instructions | native, M/s | Python, M/s |\n|---|---|---|---|---|")
    for name, write in PROGRAMS.items():
        for xlen in (32, 64):
            instructions, native = speed(xlen, write, True)
            _, python = speed(xlen, write, False)
            print(f"| {name} | {xlen} | {instructions} | {native:.0f} | {python:.2f} |")


if __name__ == "__main__":
    main()
