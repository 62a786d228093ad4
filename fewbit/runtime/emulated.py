"""Running a library for another kind of processor under qemu, without a cross compiler.

A small program is made beside the library, as the library itself was, by LLVM and LLD: it reads
inputs from a file, calls the library and writes outputs. Pointers and sizes are 64 bits wide, so
the structs of the C interface are arrays of such words. Only qemu's user mode and the processor's
own libc have to be here; what is missing is named, with the packages that have it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fewbit.base.target_name import TargetName
from fewbit.codegen.interface import ERRORS
from fewbit.errors import Error, MissingToolError, ShapeError, UnsupportedError
from fewbit.llvm.function import Function, Prototype
from fewbit.llvm.types import I32, I64
from fewbit.llvm.values import Value
from fewbit.program.artifact import Folder, Manifest, Tensor
from fewbit.runtime.native import (
    check_inputs,
    check_threads,
    dtype_of,
    read_signed,
    weights_of,
)
from fewbit.toolchain.isa import Isa, host_architecture, names
from fewbit.toolchain.link import lld, stand_in
from fewbit.toolchain.objects import emit_object, parse_ir

Array = np.ndarray[Any, Any]

_READ = Prototype.of("read", "i64", "i32", "ptr", "i64")
_WRITE = Prototype.of("write", "i64", "i32", "ptr", "i64")
_ALLOCATE = Prototype.of("aligned_alloc", "ptr", "i64", "i64")
_EXIT = Prototype.of("_exit", "void", "i32")


@dataclass(frozen=True)
class Emulator:
    """qemu's user mode for one architecture."""

    architecture: str
    loader: str
    """The path of the loader within the system's root."""
    libc: str
    """Debian's package of the libc."""
    processor: str

    @property
    def program(self) -> str:
        return f"qemu-{self.architecture}"

    @property
    def root(self) -> Path:
        """Where Debian's packages put this processor's libc."""
        return Path("/usr") / f"{self.architecture}-linux-gnu"

    @property
    def command(self) -> list[str]:
        return [self.program, "-L", str(self.root), "-cpu", self.processor]

    def check(self) -> None:
        """Refuse a machine that lacks something, and say what to install."""
        what = f"this is code for {self.architecture}, which this machine runs in {self.program}"
        if shutil.which(self.program) is None:
            hint = f"install qemu's user mode (Debian: apt install qemu-user {self.libc})"
            raise MissingToolError(f"{what}, and that is not installed", hint=hint)
        if not (self.root / self.loader).exists():
            hint = f"install it (Debian: apt install {self.libc})"
            raise MissingToolError(
                f"{what}, with a libc in {self.root} that is not there", hint=hint
            )


EMULATORS = {
    each.architecture: each
    for each in (
        Emulator("aarch64", "lib/ld-linux-aarch64.so.1", "libc6-arm64-cross", "max"),
        Emulator("riscv64", "lib/ld-linux-riscv64-lp64d.so.1", "libc6-riscv64-cross", "max"),
        Emulator("x86_64", "lib64/ld-linux-x86-64.so.2", "libc6-amd64-cross", "max"),
    )
}


def foreign_isa(manifest: Manifest) -> Isa | None:
    """Return the processor of a library, if it is of another architecture than this machine."""
    target = TargetName.parse(manifest.target)
    processor = manifest.variants[0].name if manifest.variants else target.detail
    if target.kind != "cpu" or processor not in names():
        return None
    isa = Isa.of(processor)
    return None if isa.architecture == host_architecture() else isa


class EmulatedLibrary:
    """A library for another architecture, called in a process of qemu's."""

    def __init__(self, folder: Folder, isa: Isa) -> None:
        self.manifest = folder.manifest
        self.emulator = EMULATORS[isa.architecture]
        self._isa = isa
        if "blas" in self.manifest.options:
            raise UnsupportedError(
                "the library calls a BLAS of its own processor, which is not here",
                hint="compile it without --blas to run it in qemu",
            )
        self.emulator.check()
        self._library = folder.file(f"lib{self.manifest.name}.so")
        read_signed(self._library, self.manifest)
        self._weights = weights_of(folder)

    def __call__(self, *arrays: Any, threads: int | None = None) -> tuple[Array, ...]:
        """Run the program and return its outputs."""
        count = check_threads(1 if threads is None else threads)
        given = check_inputs(arrays, self.manifest.inputs)
        with TemporaryDirectory(prefix="fewbit-qemu-") as temporary:
            folder = Path(temporary)
            weights = b"" if self._weights is None else self._weights.read_bytes()
            inputs = [array.tobytes() for array in given]
            (folder / "inputs").write_bytes(b"".join([weights, *inputs]))
            caller = _Caller(self.manifest, given, count, len(weights))
            program = self._link(caller.text, folder)
            with (folder / "inputs").open("rb") as source, (folder / "outputs").open("wb") as sink:
                done = subprocess.run(
                    [*self.emulator.command, str(program)],
                    stdin=source, stdout=sink, stderr=subprocess.PIPE, text=True,
                )  # fmt: skip
            self._check(done)
            return _parse_outputs((folder / "outputs").read_bytes(), self.manifest.outputs)

    def _link(self, text: str, folder: Path) -> Path:
        module = parse_ir(text)
        module.triple = self._isa.triple
        program, caller = folder / "program", folder / "caller.o"
        caller.write_bytes(emit_object(module, Isa.of(self._isa.architecture)))
        functions = [each.name for each in (_READ, _WRITE, _ALLOCATE, _EXIT)]
        lld([
            "-o", str(program), "-dynamic-linker", f"/{self.emulator.loader}",
            "-rpath", str(self._library.parent.resolve()), "--allow-shlib-undefined",
            str(caller), str(self._library), stand_in(folder, "libc.so.6", functions, self._isa),
        ])  # fmt: skip
        return program

    def _check(self, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode == 0:
            return
        if 0 < done.returncode < len(ERRORS):
            kind, meaning = ERRORS[done.returncode]
            if kind == "SHAPE":
                raise ShapeError(f"the inputs do not fit together: {meaning}")
            raise Error(f"the compiled program reports an error: {meaning}")
        complaint = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise UnsupportedError(
            f"{self.emulator.program} does not run the library: {complaint}",
            hint="an older qemu lacks instructions of newer processors; update it, or compile for "
            f"cpu:{self.emulator.architecture}",
        )


class _Caller:
    """A program of one function, which makes one call."""

    def __init__(
        self, manifest: Manifest, given: Sequence[Array], threads: int, weights: int
    ) -> None:
        """Call with inputs that are read, behind so many bytes of weights if there are any."""
        self._start = start = Function("_start", "")
        self._manifest = manifest
        name = manifest.name
        shapes = Prototype.of(f"{name}_shapes", "i32", "ptr", "ptr")
        arena_bytes = Prototype.of(f"{name}_arena_bytes", "i64", "ptr")
        run = Prototype.of(f"{name}_run", "i32", "ptr", "ptr", "ptr", "i32")
        use_weights = Prototype.of(f"{name}_use_weights", "i32", "ptr", "i64")
        self._used = (_READ, _WRITE, _ALLOCATE, _EXIT, shapes, arena_bytes, run, use_weights)
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
        start.call(_EXIT, start.constant(I32, 0))
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
        start, at, sink = self._start, 0, self._start.constant(I32, 1)
        for tensor in self._manifest.outputs:
            count = len(_dynamic(tensor))
            start.call(_WRITE, sink, start.at(words, at + 1, I64), start.integer(8 * count))
            memory = start.pointer(start.load(I64, words, at))
            start.call(_WRITE, sink, memory, self._bytes(tensor, words, at))
            at += _words(tensor)

    def _allocate(self, size: Value) -> Value:
        whole = (size + 64) & -64
        return self._start.call(_ALLOCATE, self._start.integer(64), whole)

    def _read(self, size: Value) -> Value:
        """Return the address of as many bytes of what is read."""
        memory = self._allocate(size)
        self._start.call(_READ, self._start.constant(I32, 0), memory, size)
        return memory

    def _leave_unless_zero(self, status: Value) -> None:
        with self._start.when(status.differs(0)):
            self._start.call(_EXIT, status)


def _dynamic(tensor: Tensor) -> list[int]:
    return [axis for axis, size in enumerate(tensor.shape) if size is None]


def _words(tensor: Tensor) -> int:
    """Return how many fields of the C interface a tensor has: a pointer, and sizes."""
    return 1 + len(_dynamic(tensor))


def _parse_outputs(data: bytes, tensors: Sequence[Tensor]) -> tuple[Array, ...]:
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
