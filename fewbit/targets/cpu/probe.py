"""Whether native code can be made and called on this machine."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

from fewbit.targets.probe import REINSTALL, Found, run_program
from fewbit.toolchain.llvm import emit_object
from fewbit.toolchain.tools import program_path


def probe_native() -> Found:
    """Turn LLVM IR into a shared library and call it: what the `cpu` target stands on."""
    linker = program_path("iree-lld")
    if linker is None:
        return Found(False, "the linker of iree-base-compiler is missing", REINSTALL)
    ir = "define i32 @double(i32 %x) {\n %y = add i32 %x, %x\n ret i32 %y\n}"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "double.o"), Path(folder, "double.so")
        source.write_bytes(emit_object(ir))
        run_program(linker, "-flavor", "gnu", "-shared", "-o", str(library), str(source))
        answer: int = ctypes.CDLL(str(library)).double(21)
    if answer != 42:
        return Found(False, f"a generated function returned {answer}, not 42", REINSTALL)
    return Found(True, "generated, linked and called a native function")
