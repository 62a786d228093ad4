"""CUDA C++ to machine code, by NVIDIA's run-time compiler as a library.

NVRTC is one shared object that comes with pip (`nvidia-cuda-nvrtc`). It needs no GPU, no headers
and no host compiler, which nvcc does; our sources include nothing, so they compile wherever it is.
"""

from __future__ import annotations

import ctypes
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fewbit.errors import MissingToolError, UnsupportedError
from fewbit.kernels.cuda.arch import Arch

HERE = Path(__file__).parent
NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


@dataclass(frozen=True)
class Resources:
    """What one thread, or block, of a kernel takes."""

    registers: int
    shared: int
    """Static bytes a block."""
    spilled: int
    """Bytes stored to memory because registers ran out, a thread."""


@dataclass(frozen=True)
class Compiled:
    """Machine code, and what the assembler said of each kernel in it."""

    image: bytes
    resources: dict[str, Resources]


def source(*names: str, **defines: str | int) -> str:
    """Return the files of this folder, one after another, with macros before them."""
    lines = [f"#define {name} {value}" for name, value in defines.items()]
    texts = [(HERE / name).read_text(encoding="utf-8") for name in names]
    return "\n".join([*lines, *texts])


def compile_source(text: str, arch: Arch, *options: str) -> Compiled:
    """Compile CUDA C++ that includes nothing."""
    nvrtc = _library()
    program = ctypes.c_void_p()
    _check(
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    )
    flags = [
        f"-arch={arch.code}",
        "-std=c++17",
        "--ptxas-options=-v",
        "-diag-suppress=177",
        *options,
    ]
    encoded = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    failed = nvrtc.nvrtcCompileProgram(program, len(flags), encoded)
    log = _read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    if failed:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        raise UnsupportedError(
            f"a GPU kernel does not compile for {arch.code}:\n{log.strip()}",
            hint="this is a mistake of ours unless the source is yours",
        )
    image = _read(program, "CUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return Compiled(image, parse_resources(log))


def parse_resources(log: str) -> dict[str, Resources]:
    """Return what ptxas -v prints, by kernel."""
    resources: dict[str, Resources] = {}
    for part in re.split(r"Compiling entry function '", log)[1:]:
        spilled = re.search(r"(\d+) bytes spill stores", part)
        registers = re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        resources[part.split("'")[0]] = Resources(
            *(int(match.group(1)) if match else 0 for match in (registers, shared, spilled))
        )
    return resources


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    nvrtc = _library()
    size = ctypes.c_size_t()
    _check(getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
    return buffer.raw


def _check(status: int) -> None:
    if status:
        raise UnsupportedError(f"NVRTC answers with error {status}")


@cache
def _library() -> ctypes.CDLL:
    for name in NAMES:
        for path in (*_find_installed(name), name):
            try:
                for builtins in Path(path).parent.glob("libnvrtc-builtins.so.*"):
                    ctypes.CDLL(str(builtins))  # which it opens by name, and would not find
                return ctypes.CDLL(str(path))
            except OSError:
                continue
    raise MissingToolError(
        "GPU kernels are compiled by NVRTC, which is not installed",
        hint="pip install 'fewbit[cuda]'",
    )


def _find_installed(name: str) -> list[Path]:
    """Return the library in wheels that pip has installed, wherever Python looks for packages."""
    return [
        path for folder in sys.path for path in sorted(Path(folder).glob(f"nvidia/*/lib/{name}"))
    ]
