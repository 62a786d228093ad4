"""Whether native code can be made and called on this machine."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

from fewbit.targets.probe import REINSTALL, Found
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.link import link_library
from fewbit.toolchain.objects import emit_object, link_modules
from fewbit.toolchain.tools import program_path


def probe_native() -> Found:
    """Turn LLVM IR into a shared library and call it: what the `cpu` target stands on."""
    if program_path("iree-lld") is None:
        return Found(False, "the linker of iree-base-compiler is missing", REINSTALL)
    isa = Isa.host()
    ir = "define i32 @double(i32 %x) {\n %y = add i32 %x, %x\n ret i32 %y\n}"
    data = emit_object(link_modules([ir], ["double"], isa), isa)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name, content in link_library([data], "double", isa, ["double"]).items():
            (Path(folder) / name).write_bytes(content)
        answer: int = ctypes.CDLL(str(Path(folder) / isa.system.library("double"))).double(21)
    if answer != 42:
        return Found(False, f"a generated function returned {answer}, not 42", REINSTALL)
    return Found(True, "generated, linked and called a native function")
