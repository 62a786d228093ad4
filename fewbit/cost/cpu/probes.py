"""Kernels that do one thing only: they measure what a processor can do at best."""

from __future__ import annotations

from dataclasses import dataclass

from fewbit.kernels.emit import Function
from fewbit.kernels.integer.dot import multiply, numbers
from fewbit.kernels.kernel import Kernel

SUMS = 14
"""As many as hide the latency of multiplications."""
AT_ONCE = 8


@dataclass(frozen=True)
class Read(Kernel):
    """Nothing but loads, of as many bytes."""

    @property
    def symbol(self) -> str:
        return "fewbit_read"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, "ptr x, i64 bytes, ptr y", public=True)
        x, size, y = f.parameters
        kind = f"<{self.isa.lanes} x i32>"
        step = AT_ONCE * self.isa.lanes * 4
        with f.loop(0, size // step * step, step, carried=[f.zero(kind)] * AT_ONCE) as loop:
            here = f.at(x, loop.index, "i8")
            loop.carry(*(v ^ f.load(kind, here, i) for i, v in enumerate(loop.carried)))
        for i, value in enumerate(loop.results):
            f.store(value, y, i)
        return f


@dataclass(frozen=True)
class FloatPeak(Kernel):
    """Nothing but multiplications and additions of floats."""

    @property
    def symbol(self) -> str:
        return "fewbit_float_peak"

    @property
    def macs(self) -> int:
        """In one turn of its loop."""
        return SUMS * self.isa.lanes

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, "ptr y, i64 count", public=True)
        y, count = f.parameters
        x = f.load(f.vector, y)
        with f.loop(0, count, carried=[x] * SUMS, hot=True) as loop:
            loop.carry(*(f.multiply_add(total, x, x) for total in loop.carried))
        for i, value in enumerate(loop.results):
            f.store(value, y, i)
        return f


@dataclass(frozen=True)
class BytePeak(Kernel):
    """Nothing but dot products of bytes."""

    @property
    def symbol(self) -> str:
        return "fewbit_byte_peak"

    @property
    def macs(self) -> int:
        """In one turn of its loop."""
        return SUMS * self.isa.lanes * self.isa.step

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, "ptr y, i64 count", public=True)
        y, count = f.parameters
        x = numbers(f, y, f.integer(0))
        start = f.load(f"<{self.isa.lanes} x i32>", y)
        with f.loop(0, count, carried=[start] * SUMS, hot=True) as loop:
            loop.carry(*(multiply(f, x, x, total) for total in loop.carried))
        for i, value in enumerate(loop.results):
            f.store(value, y, i)
        return f


@dataclass(frozen=True)
class Repeated(Kernel):
    """A kernel called again and again, so that the call from Python does not count."""

    kernel: Kernel

    @property
    def symbol(self) -> str:
        return f"{self.kernel.symbol}_repeated"

    def function(self) -> Function:
        callee = self.kernel.function()
        given = ", ".join(f"{p.type} {p.text[1:]}" for p in callee.parameters)
        f = Function(self.isa, self.symbol, f"{given}, i64 repeats", public=True)
        *arguments, repeats = f.parameters
        with f.loop(0, repeats):
            f.call(callee, *arguments)
        return f
