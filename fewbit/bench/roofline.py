"""What this processor could do at best: the bound that a layer's time is compared with.

A call takes at least as long as its multiplications take at the processor's peak, and as long as
its bytes take to be read. Both are measured here, by loops that do nothing else, on one thread.
How fast memory is depends on how much is read again and again: weights are read once in a run, so
they come from where the whole program fits; what flows between layers has just been written.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter, process_time
from typing import Any

import numpy as np

from fewbit.bench.timing import repeats_of, sample
from fewbit.kernels.emit import Function
from fewbit.kernels.integer.dot import multiply, numbers
from fewbit.kernels.isa import Isa
from fewbit.kernels.kernel import Kernel, module_text
from fewbit.runtime.profile import CallProfile

FOOTPRINTS = tuple(1 << bits for bits in (14, 17, 19, 20, 21, 22, 23, 25, 27))
"""Bytes that are read again and again, from a first cache to main memory."""
SECONDS = 0.05
"""For each measurement."""
STEPS = 20_000
LEAST_READ = 1 << 20
PARAMETERS = "ptr x, i64 count, ptr y, i64 window"
_FLOATS = re.compile(r"fewbit_(matmul|conv2d|depthwise)_f32")


@dataclass(frozen=True)
class Roofline:
    """One thread's bounds, a second."""

    float_macs: float
    byte_macs: float
    """Of 8-bit integers, summed in 32 bits; narrower ones are widened to these."""
    bytes_read: dict[int, float]
    """By how many bytes are read again and again."""

    def seconds(self, call: CallProfile, program_bytes: int, threads: int = 1) -> float:
        """The least time for one execution of a call, in a program of so many bytes in all."""
        peak = self.float_macs if _FLOATS.fullmatch(call.kernel) else self.byte_macs
        flowing = call.bytes - call.weight_bytes
        reading = call.weight_bytes / self.rate(program_bytes) + flowing / self.rate(flowing)
        return max(call.macs / peak, reading) / threads

    def rate(self, footprint: int) -> float:
        """Bytes a second, read from a memory of this size."""
        known = next((size for size in self.bytes_read if footprint <= size), None)
        return self.bytes_read[max(self.bytes_read) if known is None else known]


def measure_roofline(isa: Isa) -> Roofline:
    floats, dots, read = _compiled([FloatPeak(isa), BytePeak(isa), Read(isa)], isa)
    memory, room = _aligned(max(FOOTPRINTS)), _aligned(4 * isa.lanes * FloatPeak.sums)
    x, y = memory.ctypes.data, room.ctypes.data
    each = STEPS * FloatPeak.sums * isa.lanes
    rates: dict[int, float] = {}
    for size in FOOTPRINTS:
        count = max(size, LEAST_READ)
        rates[size] = count / _least(lambda size=size, count=count: read(x, count, y, size))
    zero = _aligned(4 * isa.lanes)
    zero[:] = 0
    z = zero.ctypes.data
    return Roofline(
        float_macs=each / _least(lambda: floats(z, STEPS, y, 0)),
        byte_macs=each * isa.step / _least(lambda: dots(z, STEPS, y, 0)),
        bytes_read=_falling(rates),
    )


def _falling(rates: dict[int, float]) -> dict[int, float]:
    """More memory is never faster; where it looks so, the smaller was disturbed."""
    best = 0.0
    for size in sorted(rates, reverse=True):
        best = max(best, rates[size])
        rates[size] = best
    return rates


class FloatPeak(Kernel):
    """Nothing but multiplications and additions, on as many sums as hide their latency."""

    sums = 14

    @property
    def symbol(self) -> str:
        return "fewbit_float_peak"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS, public=True)
        x, count, y, _ = f.parameters
        value = f.load(f.vector, x)
        with f.loop(0, count, carried=[value] * self.sums, hot=True) as loop:
            loop.carry(*(f.multiply_add(total, value, value) for total in loop.carried))
        for i, value in enumerate(loop.results):
            f.store(value, y, i)
        return f


class BytePeak(Kernel):
    """Nothing but dot products of bytes."""

    sums = FloatPeak.sums

    @property
    def symbol(self) -> str:
        return "fewbit_byte_peak"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS, public=True)
        x, count, y, _ = f.parameters
        value = numbers(f, x, f.integer(0))
        start = f.load(f"<{self.isa.lanes} x i32>", x)
        with f.loop(0, count, carried=[start] * self.sums, hot=True) as loop:
            loop.carry(*(multiply(f, value, value, total) for total in loop.carried))
        for i, value in enumerate(loop.results):
            f.store(value, y, i)
        return f


class Read(Kernel):
    """Nothing but loads, from a window of memory again and again; its size is a power of 2."""

    at_once = 8

    @property
    def symbol(self) -> str:
        return "fewbit_read"

    def function(self) -> Function:
        f = Function(self.isa, self.symbol, PARAMETERS, public=True)
        x, count, y, window = f.parameters
        kind = f"<{self.isa.lanes} x i32>"
        step = self.at_once * self.isa.lanes * 4
        with f.loop(0, count, step, carried=[f.zero(kind)] * self.at_once) as loop:
            here = f.at(x, loop.index & (window - 1), "i8")
            loop.carry(*(v ^ f.load(kind, here, i) for i, v in enumerate(loop.carried)))
        for i, value in enumerate(loop.results):
            f.store(value, y, i)
        return f


def _compiled(kernels: list[Kernel], isa: Isa) -> list[Callable[..., None]]:
    from llvmlite import binding

    from fewbit.targets.cpu.objects import parse_ir, target_machine

    engine: Any = binding.create_mcjit_compiler(
        parse_ir(module_text(kernels, isa)), target_machine(isa)
    )
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    made: list[Callable[..., None]] = []
    for kernel in kernels:
        function = kind(engine.get_function_address(kernel.symbol))
        function.engine = engine  # pyright: ignore[reportAttributeAccessIssue]
        made.append(function)
    return made


def _least(function: Callable[[], None]) -> float:
    """Seconds of a call, at best."""
    repeats = repeats_of(function, process_time)
    best, end = inf, perf_counter() + SECONDS
    while perf_counter() < end:
        best = min(best, sample(function, repeats, process_time))
    return best


def _aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    # Not zeros: untouched memory is one page of the system's, again and again.
    room = np.ones(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + size]
