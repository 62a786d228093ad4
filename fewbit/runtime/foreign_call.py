"""A program of one function that calls a library once, for a system or processor that is not ours.

It is made beside the library, as the library itself was, by LLVM and LLD: it reads inputs from its
standard input, calls the library and writes outputs. Pointers and sizes are 64 bits wide on every
such system, so the structs of the C interface are arrays of such words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I32, I64
from fewbit.llvm.values import Value
from fewbit.program.artifact import Manifest, Tensor
from fewbit.runtime.native import dtype_of

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
_BINARY = 0x8000
"""What Windows calls files whose ends of lines it leaves as they are."""


@dataclass(frozen=True)
class Calls:
    """What such a program calls of a C library."""

    read: Prototype
    write: Prototype
    allocate: Prototype
    exit: Prototype
    size_first: bool = False
    """Whether memory is asked for by its size, then by its alignment."""
    set_mode: Prototype | None = None
    first_error: int = 0
    """What is added to errors of ours: of the system's own, wine gives the lowest byte."""

    @property
    def functions(self) -> tuple[Prototype, ...]:
        every = (self.read, self.write, self.allocate, self.exit, self.set_mode)
        return tuple(each for each in every if each is not None)


UNIX = Calls(
    Prototype.of("read", "i64", "i32", "ptr", "i64"),
    Prototype.of("write", "i64", "i32", "ptr", "i64"),
    Prototype.of("aligned_alloc", "ptr", "i64", "i64"),
    Prototype.of("_exit", "void", "i32"),
)
WINDOWS = Calls(
    Prototype.of("_read", "i32", "i32", "ptr", "i32"),
    Prototype.of("_write", "i32", "i32", "ptr", "i32"),
    Prototype.of("_aligned_malloc", "ptr", "i64", "i64"),
    Prototype.of("_exit", "void", "i32"),
    size_first=True,
    set_mode=Prototype.of("_setmode", "i32", "i32", "i32"),
    first_error=64,
)


class Caller:
    """A program of one function, which makes one call."""

    def __init__(
        self,
        manifest: Manifest,
        given: Sequence[Array],
        threads: int,
        weights: int,
        calls: Calls = UNIX,
    ) -> None:
        """Call with inputs that are read, behind so many bytes of weights if there are any."""
        self._start = start = Function("_start", "")
        self._calls = calls
        if calls.set_mode is not None:
            for file in (0, 1):
                start.call(calls.set_mode, start.constant(I32, file), start.constant(I32, _BINARY))
        self._manifest = manifest
        name = manifest.name
        shapes = Prototype.of(f"{name}_shapes", "i32", "ptr", "ptr")
        arena_bytes = Prototype.of(f"{name}_arena_bytes", "i64", "ptr")
        run = Prototype.of(f"{name}_run", "i32", "ptr", "ptr", "ptr", "i32")
        use_weights = Prototype.of(f"{name}_use_weights", "i32", "ptr", "i64")
        self._used = (*calls.functions, shapes, arena_bytes, run, use_weights)
        if weights:
            size = start.integer(weights)
            self._leave_unless_zero(start.call(use_weights, self._read(size), size))
        inputs = self._inputs(given)
        outputs = start.array(I64, max(1, sum(map(_words, manifest.outputs))))
        self._leave_unless_zero(start.call(shapes, inputs, outputs))
        self._allocate_outputs(outputs)
        arena = self._allocate(start.call(arena_bytes, inputs))
        threads_value = start.constant(I32, threads)
        self._leave_unless_zero(start.call(run, inputs, outputs, arena, threads_value))
        self._write_outputs(outputs)
        start.call(calls.exit, start.constant(I32, 0))
        start.ret()

    @property
    def text(self) -> str:
        declared = [each.declaration() for each in self._used]
        return "\n".join([*declared, self._start.text()])

    def _inputs(self, given: Sequence[Array]) -> Value:
        start, tensors = self._start, self._manifest.inputs
        words, at = start.array(I64, max(1, sum(map(_words, tensors)))), 0
        for tensor, array in zip(tensors, given, strict=True):
            memory = self._read(start.integer(array.nbytes))
            start.store(start.address(memory), words, at)
            for i, axis in enumerate(_dynamic(tensor)):
                start.store(start.integer(array.shape[axis]), words, at + 1 + i)
            at += _words(tensor)
        return words

    def _allocate_outputs(self, words: Value) -> None:
        """Give outputs memory of the sizes that the library wrote."""
        start, at = self._start, 0
        for tensor in self._manifest.outputs:
            memory = self._allocate(self._bytes(tensor, words, at))
            start.store(start.address(memory), words, at)
            at += _words(tensor)

    def _bytes(self, tensor: Tensor, words: Value, at: int) -> Value:
        """Return how large an output is, by the sizes in its fields: a run may lessen them."""
        fixed = [size for size in tensor.shape if size is not None]
        count = int(np.prod(fixed, dtype=np.int64)) * dtype_of(tensor).itemsize
        size = self._start.integer(count)
        for i in range(len(_dynamic(tensor))):
            size = size * self._start.load(I64, words, at + 1 + i)
        return size

    def _write_outputs(self, words: Value) -> None:
        """Write the sizes of each output that only a run knows, then its elements."""
        start, at = self._start, 0
        for tensor in self._manifest.outputs:
            count = len(_dynamic(tensor))
            sizes = start.at(words, at + 1, I64)
            self._transfer(self._calls.write, sizes, start.integer(8 * count))
            memory = start.pointer(start.load(I64, words, at))
            self._transfer(self._calls.write, memory, self._bytes(tensor, words, at))
            at += _words(tensor)

    def _allocate(self, size: Value) -> Value:
        whole, alignment = (size + ALIGNMENT) & -ALIGNMENT, self._start.integer(ALIGNMENT)
        order = (whole, alignment) if self._calls.size_first else (alignment, whole)
        return self._start.call(self._calls.allocate, *order)

    def _transfer(self, function: Prototype, memory: Value, size: Value) -> None:
        """Read bytes from standard input, or write them to standard output."""
        start, file = self._start, 0 if function is self._calls.read else 1
        given = size if function.parameters[2] == I64 else start.convert("trunc", size, I32)
        start.call(function, start.constant(I32, file), memory, given)

    def _read(self, size: Value) -> Value:
        """Return the address of as many bytes of what is read."""
        memory = self._allocate(size)
        self._transfer(self._calls.read, memory, size)
        return memory

    def _leave_unless_zero(self, status: Value) -> None:
        with self._start.when(status.differs(0)):
            self._start.call(self._calls.exit, status + self._calls.first_error)


def _dynamic(tensor: Tensor) -> list[int]:
    return [axis for axis, size in enumerate(tensor.shape) if size is None]


def _words(tensor: Tensor) -> int:
    """Return how many fields of the C interface a tensor has: a pointer, and sizes."""
    return 1 + len(_dynamic(tensor))


def parse_outputs(data: bytes, tensors: Sequence[Tensor]) -> tuple[Array, ...]:
    outputs: list[Array] = []
    at = 0
    for tensor in tensors:
        axes, dtype = _dynamic(tensor), dtype_of(tensor)
        known = iter(np.frombuffer(data, np.int64, len(axes), at).tolist())
        at += 8 * len(axes)
        shape = [int(next(known)) if size is None else size for size in tensor.shape]
        count = int(np.prod(shape, dtype=np.int64))
        outputs.append(np.frombuffer(data, dtype, count, at).reshape(shape).copy())
        at += count * dtype.itemsize
    return tuple(outputs)
