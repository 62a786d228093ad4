"""One dispatch, called in this process.

An executable of IREE's for CPUs is an ELF library that the system's loader takes. Calling it
directly leaves out IREE's runtime, so that a microsecond can be timed, and gives the bytes that a
dispatch writes, which another configuration of it must write too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from time import thread_time

from fewbit.tune.iree.bindings import Bytes, aligned_zeros
from fewbit.tune.iree.executable import Binary, failure
from fewbit.tune.iree.interface import VERSION, Environment, Header, State
from fewbit.tune.iree.runner import runner

SCRATCH = 1 << 20
"""Bytes of local memory of a workgroup."""


class Library:
    """A dispatch that can be called, with bindings of its own."""

    def __init__(self, binary: Binary, path: Path, constants: Sequence[int], bindings: list[Bytes]):
        path.write_bytes(binary.data)
        self._loaded = ctypes.CDLL(str(path))
        self._workgroups = binary.workgroups
        self.bindings = bindings
        self._environment = Environment()
        query = self._loaded.iree_hal_executable_library_query
        query.restype, query.argtypes = ctypes.c_void_p, [ctypes.c_uint32, ctypes.c_void_p]
        version = ctypes.cast(query(VERSION, ctypes.byref(self._environment)) or 0, ctypes.c_void_p)
        if not version.value:
            raise failure("its library has another version than this one knows")
        header = Header.from_address(version.value)
        if header.import_count:
            raise failure("it calls functions of IREE's runtime")
        self._function = ctypes.c_void_p.from_address(header.export_pointers).value
        self._constants = (ctypes.c_uint32 * max(1, len(constants)))(*constants)
        addresses = [b.ctypes.data for b in bindings]
        self._addresses = (ctypes.c_void_p * len(bindings))(*addresses)
        self._lengths = (ctypes.c_size_t * len(bindings))(*(b.nbytes for b in bindings))
        self._scratch = aligned_zeros(SCRATCH)
        x, y, z = self._workgroups
        self._state = State(
            *(1, 1, 1, len(constants), x, y, z, 1, len(bindings)),
            ctypes.addressof(self._constants),
            ctypes.addressof(self._addresses),
            ctypes.addressof(self._lengths),
        )
        self._group = (ctypes.c_uint64 * 8)()
        self._group[2] = self._scratch.ctypes.data
        self._group[3] = SCRATCH

    def run(self, times: int = 1) -> None:
        runner()(
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
