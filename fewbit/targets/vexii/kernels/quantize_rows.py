"""Dynamic quantization of rows by their largest magnitude, in assembly: 3 to 8 bits.

Four elements at a time. Conversion to integers rounds to nearest, ties to even, as it should, and
no clamp is needed: no element times the row's factor is further from 0 than the largest integer.
What LLVM makes of the same loops rounds with ten instructions, because it keeps floats beyond the
range of integers apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fewbit.kernels.emit import Function
from fewbit.numerics.formulas import EPS
from fewbit.numerics.widths import Width
from fewbit.riscv.assembler import Assembler
from fewbit.targets.vexii.kernels.products import Code

AT_ONCE = 4


@dataclass(frozen=True)
class LargestMagnitude:
    """The largest magnitude of a row."""

    parameters: ClassVar[str] = "ptr, i64, ptr"
    """The row, how long it is, and where the result goes."""
    symbol: str = "largest_magnitude"

    def emit(self, assembler: Assembler) -> None:
        a = assembler
        a.symbol(self.symbol)
        for number in range(AT_ONCE):
            a.fmv_w_x(f"fa{number}", "zero")

        def some(count: int) -> None:
            for number in range(count):
                a.flw(f"ft{number}", 4 * number, "a0")
            for number in range(count):
                a.fsgnjx_s(f"ft{number}", f"ft{number}", f"ft{number}")
            for number in range(count):
                a.fmax_s(f"fa{number}", f"fa{number}", f"ft{number}")
            a.addi("a0", "a0", 4 * count)

        _over(a, "a1", some)
        for number in range(1, AT_ONCE):
            a.fmax_s("fa0", "fa0", f"fa{number}")
        a.fsw("fa0", 0, "a2")
        a.ret()


@dataclass(frozen=True)
class RoundRow:
    """A row times a factor, as bytes."""

    parameters: ClassVar[str] = "ptr, i64, ptr, ptr"
    """The row, how long it is, where the bytes go, and where the factor is."""
    symbol: str = "round_row"

    def emit(self, assembler: Assembler) -> None:
        a = assembler
        a.symbol(self.symbol)
        a.flw("fa0", 0, "a3")

        def some(count: int) -> None:
            for number in range(count):
                a.flw(f"ft{number}", 4 * number, "a0")
            for number in range(count):
                a.fmul_s(f"ft{number}", f"ft{number}", "fa0", rounding="rne")
            for number in range(count):
                a.fcvt_w_s(f"t{number}", f"ft{number}", rounding="rne")
            for number in range(count):
                a.sb(f"t{number}", number, "a2")
            a.addi("a0", "a0", 4 * count)
            a.addi("a2", "a2", count)

        _over(a, "a1", some)
        a.ret()


def _over(a: Assembler, left: str, some: Callable[[int], None]) -> None:
    """Do `some` for all elements, of which a register has the number."""
    main, tail, one, done = (a.fresh(name) for name in ("main", "tail", "one", "done"))
    a.addi(left, left, -AT_ONCE)
    a.blt(left, "zero", tail)
    a.label(main)
    some(AT_ONCE)
    a.addi(left, left, -AT_ONCE)
    a.bge(left, "zero", main)
    a.label(tail)
    a.addi(left, left, AT_ONCE)
    a.beqz(left, done)
    a.label(one)
    some(1)
    a.addi(left, left, -1)
    a.bnez(left, one)
    a.label(done)


def quantize_rows(code: Code, width: Width) -> Function:
    """Integers and scales of m rows of k floats; the formulas are those of numerics.md."""
    largest, rounding = LargestMagnitude(), RoundRow()
    for each in (largest, rounding):
        code.assembled.setdefault(each.symbol, each)
    name = f"quantize_rows{width.bits}"
    f = Function(code.processor.isa, name, "ptr x, ptr values, ptr scales, i64 m, i64 k")
    x, values, scales, m, k = f.parameters
    factor_at = f.array("float", 1)
    least, one = f.number(float(EPS)), f.number(1.0)
    with f.loop(0, m) as loop:
        row = f.at(x, loop.index * k, "float")
        f.write(f"call void @{largest.symbol}(ptr {row}, i64 {k}, ptr {factor_at})")
        found = f.load("float", factor_at)
        is_more = f.set("i1", f"fcmp ogt float {found}, {least}")
        bounded = f.select(is_more, found, least)
        factor = f.set("float", f"fdiv float {f.number(width.qmax)}, {bounded}")
        f.store(factor, factor_at)
        scale = f.set("float", f"fdiv float {one}, {factor}")
        f.store(scale, scales, loop.index)
        to = f.at(values, loop.index * k, "i8")
        f.write(f"call void @{rounding.symbol}(ptr {row}, i64 {k}, ptr {to}, ptr {factor_at})")
    return code.add(f)
