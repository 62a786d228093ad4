"""Dynamic quantization of rows, in assembly, four elements at a time.

Of 3 to 8 bits, by the largest magnitude. Conversion to integers rounds to nearest, ties to even, as
it should, and no clamp is needed: no element times the row's factor is further from 0 than the
largest integer. What LLVM makes of the same loop rounds with ten instructions, because it keeps
floats beyond the range of integers apart.

Of fewer bits, by the mean magnitude s, with round(x / s) in the formula. A quotient only grows with
x, so there are bounds of x at which its rounded value changes: they are found once for a row, with
divisions, and elements are compared with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from fewbit.kernels.emit import Function, Value
from fewbit.kernels.mean_magnitudes import mean_magnitude
from fewbit.numerics.formulas import EPS
from fewbit.numerics.widths import Width
from fewbit.riscv.assembler import Assembler
from fewbit.targets.vexii.kernels.matmul import Code

AT_ONCE = 4


@dataclass(frozen=True)
class LargestMagnitude:
    """The largest magnitude of a row."""

    parameters: ClassVar[str] = "ptr, index, ptr"
    """The row, how long it is, and where the result goes."""
    symbol: str = "largest_magnitude"

    def emit(self, assembler: Assembler) -> None:
        a = assembler
        a.symbol(self.symbol)
        for number in range(AT_ONCE):
            a.fmv_w_x(f"fa{number}", "zero")

        def some(count: int) -> None:
            _magnitudes(a, count)
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

    parameters: ClassVar[str] = "ptr, index, ptr, ptr"
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


@dataclass(frozen=True)
class CompareRow:
    """A row as bytes: how many of the lower bounds it is above, less those it is below.

    One bit is 1 from 0 on, and -1 below. Ternary is above h or below -h; two bits are also -2 from
    -t down.
    """

    width: Width

    parameters: ClassVar[str] = "ptr, index, ptr, ptr"
    """The row, how long it is, where the bytes go, and where h and t are."""

    @property
    def symbol(self) -> str:
        return "compare_row_ternary" if self.width.is_ternary else f"compare_row{self.width.bits}"

    def emit(self, assembler: Assembler) -> None:
        a = assembler
        a.symbol(self.symbol)
        a.flw("fa0", 0, "a3")
        a.flw("fa2", 4, "a3")
        a.fsgnjn_s("fa1", "fa0", "fa0")
        a.fsgnjn_s("fa2", "fa2", "fa2")
        a.fmv_w_x("fa3", "zero")

        def some(count: int) -> None:
            for number in range(count):
                a.flw(f"ft{number}", 4 * number, "a0")
            for number in range(count):
                self._compare(a, f"t{number}", f"ft{number}")
            for number in range(count):
                a.sb(f"t{number}", number, "a2")
            a.addi("a0", "a0", 4 * count)
            a.addi("a2", "a2", count)

        _over(a, "a1", some)
        a.ret()

    def _compare(self, a: Assembler, to: str, x: str) -> None:
        if self.width.is_binary:
            a.fle_s(to, "fa3", x)
            a.slli(to, to, 1)
            a.addi(to, to, -1)
            return
        a.flt_s(to, "fa0", x)
        a.flt_s("t4", x, "fa1")
        a.sub(to, to, "t4")
        if not self.width.is_ternary:
            a.fle_s("t5", x, "fa2")
            a.sub(to, to, "t5")


def _magnitudes(a: Assembler, count: int) -> None:
    """Load the magnitudes of a row's next elements to ft0 and on."""
    for number in range(count):
        a.flw(f"ft{number}", 4 * number, "a0")
    for number in range(count):
        a.fsgnjx_s(f"ft{number}", f"ft{number}", f"ft{number}")


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
    """Return integers and scales of m rows of k floats; the formulas are those of numerics.md."""
    return code.add(_by_largest(code, width) if width.bits > 2 else _by_mean(code, width))


def _function(code: Code, width: Width) -> Function:
    name = "ternary" if width.is_ternary else str(width.bits)
    parameters = "ptr x, ptr values, ptr scales, index m, index k"
    return Function(code.processor.isa, f"quantize_rows{name}", parameters)


def _by_largest(code: Code, width: Width) -> Function:
    largest, rounding = code.prototype(LargestMagnitude()), code.prototype(RoundRow())
    f = _function(code, width)
    x, values, scales, m, k = f.parameters
    factor_at = f.array("float", 1)
    with f.loop(0, m) as loop:
        row = f.at(x, loop.index * k, "float")
        f.call(largest, row, k, factor_at)
        bounded = _at_least_eps(f, f.load("float", factor_at))
        factor = f.number(float(width.qmax)) / bounded
        f.store(factor, factor_at)
        scale = f.number(1.0) / factor
        f.store(scale, scales, loop.index)
        to = f.at(values, loop.index * k, "i8")
        f.call(rounding, row, k, to, factor_at)
    return f


def _by_mean(code: Code, width: Width) -> Function:
    compare = code.prototype(CompareRow(width))
    f = _function(code, width)
    x, values, scales, m, k = f.parameters
    bounds_at = f.array("float", 2)
    mean = mean_magnitude(code.processor.isa)
    with f.loop(0, m) as loop:
        row = f.at(x, loop.index * k, "float")
        f.call(mean, row, k, f.at(scales, loop.index, "float"))
        scale = f.load("float", scales, loop.index)
        # x / s rounds to more than 0.5 exactly where x is more than s / 2.
        f.store(scale * 0.5, bounds_at)
        if width.precision == 2:
            f.store(_smallest_above(f, scale, 1.5), bounds_at, 1)
        else:
            f.store(scale, bounds_at, 1)
        to = f.at(values, loop.index * k, "i8")
        f.call(compare, row, k, to, bounds_at)
    return f


def _smallest_above(f: Function, scale: Value, quotient: float) -> Value:
    """Return the smallest float of at least `quotient` times the scale, by a rounded division."""
    bits = f.bits(scale * quotient, "i32")
    smallest = bits + 1
    for step in (0, -1, -2):
        tried = bits + step
        smallest = f.select(f.bits(tried, "float") / scale >= quotient, tried, smallest)
    return f.bits(smallest, "float")


def _at_least_eps(f: Function, magnitude: Value) -> Value:
    least = f.number(float(EPS))
    return f.select(magnitude > least, magnitude, least)
