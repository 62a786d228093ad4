"""One dispatch, compiled alone and called in this process.

An executable of IREE's for CPUs is an ELF library that the system's loader takes. Calling it
directly leaves out IREE's runtime, so that a microsecond can be timed, and gives the bytes that a
dispatch writes, which another configuration of it must write too.
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import thread_time

import numpy as np
from numpy.typing import NDArray

from fewbit.errors import PassError, Place
from fewbit.toolchain.elf import sections
from fewbit.toolchain.tools import iree_tool

COUNTS = "--mlir-print-ir-after=iree-hal-translate-target-executable-variants"
"""Shows how many workgroups a configuration makes: the host computes it, and no library tells."""
ALIGNMENT = 64
SCRATCH = 1 << 20
"""Bytes of local memory of a workgroup."""
LIMIT = 60
"""Seconds that one dispatch may take to compile."""

_EXPORT = re.compile(
    r"hal\.executable\.export .*?\n(?P<count>.*?)hal\.return (?P<names>[^:]*):", re.S
)
_CONSTANT = re.compile(r"(%[\w#]+) = arith\.constant (\d+) : index")
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Binary:
    """What came out of the compiler for one configuration."""

    data: bytes
    workgroups: tuple[int, int, int]

    @property
    def instructions(self) -> bytes:
        """The code itself, without names and debugging."""
        code = [s for s in sections(self.data) if s.name == ".text"]
        return b"".join(self.data[s.offset : s.offset + s.size] for s in code)


def compile_dispatch(text: str, flags: Sequence[str], folder: Path, name: str) -> Binary:
    """Return a configured dispatch as a library."""
    data, _, workgroups = compile_executable(text, flags, folder, name)
    return Binary(data, workgroups)


def compile_executable(
    text: str, flags: Sequence[str], folder: Path, name: str
) -> tuple[bytes, str, tuple[int, int, int]]:
    """Return what IREE makes of a configured dispatch, what it printed, and how many workgroups."""
    source, library = folder / f"{name}.mlir", folder / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    begun = ("--compile-mode=hal-executable", "--compile-from=executable-configurations")
    command = [
        iree_tool("iree-compile"),
        *begun,
        *flags,
        COUNTS,
        "--mlir-elide-elementsattrs-if-larger=4",
    ]
    try:
        done = subprocess.run(
            [*command, str(source), "-o", str(library)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as e:
        raise failure(f"it takes longer than {LIMIT} s to compile") from e
    if done.returncode or not library.is_file():
        line = next((x for x in done.stderr.splitlines() if "error: " in x), "no message")
        raise failure(line.partition("error: ")[2] or line)
    return library.read_bytes(), done.stderr, _workgroups(done.stderr)


def failure(what: str) -> PassError:
    return PassError(f"IREE cannot compile this configuration: {what}", place=Place(stage="tune"))


def _workgroups(printed: str) -> tuple[int, int, int]:
    match = _EXPORT.search(printed)
    if match is None:
        raise failure("it does not say how many workgroups there are")
    constants = dict(_CONSTANT.findall(match["count"]))
    names = [name.strip() for name in match["names"].split(",")]
    if len(names) != 3 or any(name not in constants for name in names):
        raise failure("how many workgroups there are depends on a run")
    x, y, z = (int(constants[name]) for name in names)
    return x, y, z


class _Environment(ctypes.Structure):
    _fields_ = [
        ("constants", ctypes.c_void_p),
        ("import_thunk", ctypes.c_void_p),
        ("import_functions", ctypes.c_void_p),
        ("import_contexts", ctypes.c_void_p),
        ("processor", ctypes.c_uint64 * 8),
    ]


class _State(ctypes.Structure):
    _fields_ = [
        ("size_x", ctypes.c_uint32),
        ("size_y", ctypes.c_uint32),
        ("size_z", ctypes.c_uint16),
        ("constant_count", ctypes.c_uint16),
        ("count_x", ctypes.c_uint32),
        ("count_y", ctypes.c_uint32),
        ("count_z", ctypes.c_uint16),
        ("max_concurrency", ctypes.c_uint8),
        ("binding_count", ctypes.c_uint8),
        ("constants", ctypes.c_void_p),
        ("binding_pointers", ctypes.c_void_p),
        ("binding_lengths", ctypes.c_void_p),
    ]


class _Header(ctypes.Structure):
    """The header of a library, as far as its functions."""

    _fields_ = [
        ("header", ctypes.c_void_p),
        ("import_count", ctypes.c_uint32),
        ("import_symbols", ctypes.c_void_p),
        ("export_count", ctypes.c_uint32),
        ("export_pointers", ctypes.c_void_p),
    ]


LOOP = """
define void @run(ptr %f, ptr %environment, ptr %state, ptr %group, i32 %x, i32 %y, i32 %z, i32 %n) {
entry:
  %py = getelementptr i32, ptr %group, i64 1
  %pz = getelementptr i32, ptr %group, i64 2
  br label %again
again:
  %r = phi i32 [ 0, %entry ], [ %r1, %again_end ]
  br label %loop_z
loop_z:
  %k = phi i32 [ 0, %again ], [ %k1, %z_end ]
  %k16 = trunc i32 %k to i16
  store i16 %k16, ptr %pz
  br label %loop_y
loop_y:
  %j = phi i32 [ 0, %loop_z ], [ %j1, %y_end ]
  store i32 %j, ptr %py
  br label %loop_x
loop_x:
  %i = phi i32 [ 0, %loop_y ], [ %i1, %loop_x ]
  store i32 %i, ptr %group
  %ignored = call i32 %f(ptr %environment, ptr %state, ptr %group)
  %i1 = add i32 %i, 1
  %mx = icmp ult i32 %i1, %x
  br i1 %mx, label %loop_x, label %y_end
y_end:
  %j1 = add i32 %j, 1
  %my = icmp ult i32 %j1, %y
  br i1 %my, label %loop_y, label %z_end
z_end:
  %k1 = add i32 %k, 1
  %mz = icmp ult i32 %k1, %z
  br i1 %mz, label %loop_z, label %again_end
again_end:
  %r1 = add i32 %r, 1
  %mr = icmp ult i32 %r1, %n
  br i1 %mr, label %again, label %done
done:
  ret void
}
"""
"""Calls all workgroups of a dispatch, several times over."""


@cache
def _runner() -> tuple[object, ctypes._CFunctionType]:  # pyright: ignore[reportPrivateUsage]
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(LOOP), machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_uint32] * 4)
    return engine, kind(engine.get_function_address("run"))


class Library:
    """A dispatch that can be called, with bindings of its own."""

    def __init__(self, binary: Binary, path: Path, constants: Sequence[int], bindings: list[Bytes]):
        path.write_bytes(binary.data)
        self._loaded = ctypes.CDLL(str(path))
        self._workgroups = binary.workgroups
        self.bindings = bindings
        self._environment = _Environment()
        for i, word in enumerate(_processor_data()):
            self._environment.processor[i] = word
        query = self._loaded.iree_hal_executable_library_query
        query.restype, query.argtypes = ctypes.c_void_p, [ctypes.c_uint32, ctypes.c_void_p]
        version = ctypes.cast(
            query(_VERSION, ctypes.byref(self._environment)) or 0, ctypes.c_void_p
        )
        if not version.value:
            raise failure("its library has another version than this one knows")
        header = _Header.from_address(version.value)
        if header.import_count:
            raise failure("it calls functions of IREE's runtime")
        self._function = ctypes.c_void_p.from_address(header.export_pointers).value
        self._constants = (ctypes.c_uint32 * max(1, len(constants)))(*constants)
        addresses = [b.ctypes.data for b in bindings]
        self._addresses = (ctypes.c_void_p * len(bindings))(*addresses)
        self._lengths = (ctypes.c_size_t * len(bindings))(*(b.nbytes for b in bindings))
        self._scratch = aligned_zeros(SCRATCH)
        x, y, z = self._workgroups
        self._state = _State(
            *(1, 1, 1, len(constants), x, y, z, 1, len(bindings)),
            ctypes.addressof(self._constants),
            ctypes.addressof(self._addresses),
            ctypes.addressof(self._lengths),
        )
        self._group = (ctypes.c_uint64 * 8)()
        self._group[2] = self._scratch.ctypes.data
        self._group[3] = SCRATCH

    def run(self, times: int = 1) -> None:
        _, function = _runner()
        function(
            self._function,
            ctypes.addressof(self._environment),
            ctypes.addressof(self._state),
            ctypes.addressof(self._group),
            *self._workgroups,
            times,
        )

    def seconds(self, times: int) -> float:
        """Return CPU time of one call, over so many."""
        start = thread_time()
        self.run(times)
        return (thread_time() - start) / times


_VERSION = 6
"""The version of the interface between IREE's runtime and its libraries: 0.6."""


@cache
def _processor_data() -> tuple[int, ...]:
    """Return flags of the processor for libraries: our flags ask for nothing."""
    return (0,) * 8


def aligned_zeros(size: int) -> Bytes:
    """Return zeros that begin at a cache line."""
    raw = np.zeros(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]
