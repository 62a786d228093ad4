"""Kernels timed in this process: the minimum CPU time of a call over many rounds.

A kernel's arguments are found by the names of its parameters, so one that is added needs nothing
here as long as it keeps to them. All calls share one piece of memory to read, filled with ones, and
one to write: times do not depend on values unless floats are denormal, which these never get, and
what a call finds in a cache is what it left there itself.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fewbit.cost.cpu.kernel_call import ImageSizes, KernelCall, MatrixSizes
from fewbit.cost.cpu.probes import BytePeak, FloatPeak, Read, Repeated
from fewbit.errors import UnsupportedError
from fewbit.kernels.kernel import Kernel, module_text
from fewbit.llvm.types import Float, Int, Pointer, Type
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.objects import jit_machine, parse_ir

_TYPES: dict[Type, Any] = {
    Pointer(): ctypes.c_void_p,
    Int(64): ctypes.c_int64,
    Float("float"): ctypes.c_float,
}
LEAST_SECONDS = 4e-4
"""The time of calls in a row: the clock is too coarse for fewer."""


@dataclass(frozen=True)
class Timer:
    """A call to be timed: `run` makes `repeats` of it."""

    run: Callable[[], None]
    repeats: int

    def seconds(self) -> float:
        start = process_time()
        self.run()
        return (process_time() - start) / self.repeats


class Bench:
    """Compiled kernels, and the memory that they work on."""

    def __init__(
        self, isa: Isa, most_bytes: int = 96 << 20, written_bytes: int | None = None
    ) -> None:
        self.isa = isa
        written = most_bytes // 2 if written_bytes is None else written_bytes
        self._memory = np.ones(most_bytes // 4 + (1 << 14), np.float32)
        self._written = np.ones(written // 4 + (1 << 14), np.float32)
        self._functions: dict[str, Callable[..., None]] = {}
        self._engines: list[Any] = []
        self._images: list[NDArray[np.int64]] = []

    def compile(self, kernels: Sequence[Kernel]) -> None:
        """Compile the kernels that are not compiled yet."""
        from llvmlite import binding

        wanted = {Repeated(self.isa, kernel).symbol: kernel for kernel in kernels}
        new = [
            Repeated(self.isa, kernel)
            for symbol, kernel in wanted.items()
            if symbol not in self._functions
        ]
        if not new:
            return
        module = parse_ir(module_text(new, self.isa))
        engine = binding.create_mcjit_compiler(module, jit_machine(self.isa))
        engine.finalize_object()
        self._engines.append(engine)
        for kernel in new:
            types = [_TYPES[p.type] for p in kernel.function().parameters]
            address = engine.get_function_address(kernel.symbol)
            self._functions[kernel.symbol] = ctypes.CFUNCTYPE(None, *types)(address)

    def timer(self, call: KernelCall) -> Timer:
        """Return the call as one thread makes it, in a loop that is long enough for the clock."""
        arguments = self._arguments(call)
        return self._timer(call.kernel, [*arguments])

    def read(self, size: int) -> Timer:
        """Return a timer that reads so many bytes."""
        (x,), (y,) = self._places(self._memory, size), self._places(self._written, 1 << 12)
        return self._timer(Read(self.isa), [x, size, y])

    def peak(self, kernel: FloatPeak | BytePeak, count: int = 2000) -> Timer:
        return self._timer(kernel, [*self._places(self._written, 1 << 12), count])

    def _timer(self, kernel: Kernel, arguments: list[Any]) -> Timer:
        self.compile([kernel])
        function = self._functions[Repeated(self.isa, kernel).symbol]
        function(*arguments, 1)
        repeats = 1
        while True:
            start = process_time()
            function(*arguments, repeats)
            spent = process_time() - start
            if spent >= LEAST_SECONDS:
                break
            repeats = max(
                2 * repeats, min(16 * repeats, int(repeats * LEAST_SECONDS / (spent + 1e-6)))
            )
        count = repeats
        return Timer(lambda: function(*arguments, count), count)

    def _places(self, memory: NDArray[np.float32], *sizes: int) -> list[int]:
        """Return addresses of pieces of memory, in different sets of the caches."""
        start = memory.ctypes.data
        addresses: list[int] = []
        at = -start % 4096
        for i, size in enumerate(sizes):
            addresses.append(start + at + 64 * (5 * i % 32))
            at += -(-size // 4096) * 4096 + 4096
        if at > memory.nbytes:
            raise UnsupportedError(
                f"a call that takes {at} bytes is not measured",
                hint="measure smaller sizes",
            )
        return addresses

    def _arguments(self, call: KernelCall) -> list[Any]:
        kernel, s = call.kernel, call.sizes
        if isinstance(s, ImageSizes):
            image = np.array(
                [s.batch, s.h, s.w, s.c, s.x_step, *s.out, s.oc, s.y_step, s.kh, s.kw,
                 *s.stride, *s.padding, *s.dilation], np.int64,
            )  # fmt: skip
            rows, depth, columns = s.rows, (1 if s.depthwise else s.c) * s.kh * s.kw, s.oc
            x_numbers, y_numbers = s.pixels * s.x_step, s.rows * s.y_step
            self._images.append(image)
            sizes = image.ctypes.data
        else:
            rows, depth, columns = s.m, s.k, s.n
            x_numbers, y_numbers = s.m * s.k, s.m * s.n
            sizes = 0
        wide = -(-columns // 64) * 64 + 64
        weights = 4 * wide * (depth + 64) + (1 << 14)
        groups = s.groups if isinstance(s, MatrixSizes) else 1
        scales = 4 * wide * groups
        x, w, w_scale, more = self._places(
            self._memory, 4 * x_numbers + 4096, weights, scales, 4 * (rows + wide)
        )
        y, out_scale = self._places(self._written, 4 * max(y_numbers, x_numbers), 4 * rows)
        values: dict[str, Any] = {
            "x": x, "a": x, "w_packed": w, "b_packed": w, "y": y, "c": y, "q": y,
            "sizes": sizes, "bias": more, "add": None, "x_scale": more, "scale": out_scale,
            "w_scale": w_scale, "rows_per_scale": rows, "lo": -inf, "hi": inf,
            "thread": 0, "threads": 1, "m": rows, "n": columns, "k": depth,
            "lda": depth, "ldx": depth, "ldc": columns, "ldy": columns, "ldq": depth,
            "groups": groups,
        }  # fmt: skip
        if getattr(kernel, "output", "") == "i8":
            values |= {"lo": -128.0, "hi": 127.0}
        named = [p.text.removeprefix("%") for p in kernel.function().parameters]
        missing = [name for name in named if name not in values]
        if missing:
            raise UnsupportedError(
                f"'{kernel.symbol}' has arguments that are not known here: {', '.join(missing)}",
                hint="measure.py gives arguments by their names",
            )
        return [values[name] for name in named]
