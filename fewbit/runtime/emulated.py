"""Running a library for another processor in qemu, or for Windows in wine, without a compiler.

A small program is made beside the library that calls it (`foreign_call.py`). Only qemu's user mode
and the processor's own libc, or wine, have to be here; what is missing is named, with the packages
that have it. Nothing runs code for macOS or Android here, and that is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fewbit.base.cache import cache_folder
from fewbit.base.target_name import TargetName
from fewbit.codegen.interface import ERRORS
from fewbit.codegen.support import support_object
from fewbit.errors import Error, MissingToolError, ShapeError, UnsupportedError
from fewbit.program.artifact import Folder, Manifest
from fewbit.runtime.foreign_call import UNIX, WINDOWS, Caller, Calls, parse_outputs
from fewbit.runtime.native import check_inputs, check_threads, read_signed, weights_of
from fewbit.toolchain import system
from fewbit.toolchain.isa import Isa, host_architecture, is_known
from fewbit.toolchain.link import stand_in
from fewbit.toolchain.link_windows import import_library
from fewbit.toolchain.lld import lld, write_object
from fewbit.toolchain.objects import emit_object, parse_ir

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Emulator:
    """qemu's user mode for one architecture."""

    architecture: str
    loader: str
    """The path of the loader within the system's root."""
    libc: str
    """Debian's package of the libc."""
    processor: str
    calls: Calls = UNIX

    @property
    def program(self) -> str:
        return f"qemu-{self.architecture}"

    @property
    def plain(self) -> str:
        """The processor whose code every version of qemu executes."""
        return self.architecture

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

    def environment(self) -> Mapping[str, str]:
        return os.environ

    def link(self, caller: bytes, library: Path, isa: Isa, folder: Path) -> Path:
        """Link a program of an object that calls a library."""
        functions = [each.name for each in self.calls.functions]
        program, path = folder / "program", write_object(folder, "caller.o", caller)
        lld([
            "-o", str(program), "-dynamic-linker", f"/{self.loader}",
            "-rpath", str(library.parent.resolve()), "--allow-shlib-undefined",
            path, str(library), stand_in(folder, "libc.so.6", functions, isa),
        ])  # fmt: skip
        return program


@dataclass(frozen=True)
class Wine:
    """Windows on other systems, with a folder of ours in place of the user's own."""

    program: str = "wine"
    calls: Calls = WINDOWS
    plain: str = "x86-64-windows"
    """What every machine that it runs on executes."""

    @property
    def path(self) -> str | None:
        """Where it is; Debian's package of the loader alone puts it on no path."""
        found = shutil.which("wine64") or shutil.which("wine")
        return found or shutil.which("/usr/lib/wine/wine64")

    @property
    def command(self) -> list[str]:
        return [self.path or self.program]

    def check(self) -> None:
        """Refuse a machine that lacks it, and say what to install."""
        if self.path is None:
            raise MissingToolError(
                "this is code for Windows, which this machine runs in wine, and that is not "
                "installed",
                hint="install it (Debian: apt install --no-install-recommends wine64)",
            )

    def environment(self) -> Mapping[str, str]:
        """Return what has wine write nothing of its own, ask for nothing and open no window."""
        home = cache_folder() / "wine"
        home.mkdir(parents=True, exist_ok=True)
        quiet = {"WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree,mshtml="}
        return {**os.environ, **quiet, "WINEPREFIX": str(home), "DISPLAY": ""}

    def link(self, caller: bytes, library: Path, isa: Isa, folder: Path) -> Path:
        """Link a program of an object that calls a library."""
        functions = [each.name for each in self.calls.functions]
        program, imports = folder / "program.exe", library.with_suffix(".lib")
        support = support_object([caller], isa)
        every = [caller] if support is None else [caller, support[0]]
        paths = [write_object(folder, f"{i}.o", data) for i, data in enumerate(every)]
        lld(
            [
                *("/nodefaultlib", "/entry:_start", "/subsystem:console", f"/out:{program}"),
                *(*paths, str(imports), import_library(folder, "ucrtbase.dll", functions, isa)),
            ],
            "link",
        )
        (folder / library.name).symlink_to(library.resolve())
        return program


EMULATORS = {
    each.architecture: each
    for each in (
        Emulator("aarch64", "lib/ld-linux-aarch64.so.1", "libc6-arm64-cross", "max"),
        Emulator("riscv64", "lib/ld-linux-riscv64-lp64d.so.1", "libc6-riscv64-cross", "max"),
        Emulator("x86_64", "lib64/ld-linux-x86-64.so.2", "libc6-amd64-cross", "max"),
    )
}


def foreign_isa(manifest: Manifest) -> Isa | None:
    """Return the processor of a library, if this machine is of another family or system."""
    target = TargetName.parse(manifest.target)
    processor = manifest.variants[0].name if manifest.variants else target.detail
    if target.kind != "cpu" or not is_known(processor):
        return None
    isa = Isa.of(processor)
    is_own = isa.architecture == host_architecture() and isa.system is system.host_system()
    return None if is_own else isa


def emulator_of(isa: Isa) -> Emulator | Wine:
    """Return what runs code for a processor and system here."""
    if isa.system is system.LINUX:
        return EMULATORS[isa.architecture]
    if isa.system is system.WINDOWS and isa.architecture == host_architecture():
        return Wine()
    raise UnsupportedError(
        f"this is code for {isa.system.title}, which nothing runs on this machine",
        hint=f"take the folder to a machine with {isa.system.title}, or compile for cpu",
    )


class EmulatedLibrary:
    """A library for another architecture or for Windows, called in a process of an emulator's."""

    def __init__(self, folder: Folder, isa: Isa) -> None:
        self.manifest = folder.manifest
        self.emulator = emulator_of(isa)
        self._isa = isa
        if "blas" in self.manifest.options:
            raise UnsupportedError(
                "the library calls a BLAS of its own processor, which is not here",
                hint="compile it without --blas to run it in qemu",
            )
        self.emulator.check()
        self._library = folder.file(isa.system.library(self.manifest.name))
        read_signed(self._library, self.manifest)
        self._weights = weights_of(folder)

    def __call__(self, *arrays: Any, threads: int | None = None) -> tuple[Array, ...]:
        """Run the program and return its outputs."""
        count = check_threads(1 if threads is None else threads)
        given = check_inputs(arrays, self.manifest.inputs)
        with TemporaryDirectory(prefix="fewbit-run-") as temporary:
            folder = Path(temporary)
            weights = b"" if self._weights is None else self._weights.read_bytes()
            inputs = [array.tobytes() for array in given]
            (folder / "inputs").write_bytes(b"".join([weights, *inputs]))
            calls = self.emulator.calls
            caller = Caller(self.manifest, given, count, len(weights), calls)
            program = self._link(caller.text, folder)
            with (folder / "inputs").open("rb") as source, (folder / "outputs").open("wb") as sink:
                done = subprocess.run(
                    [*self.emulator.command, str(program)],
                    stdin=source, stdout=sink, stderr=subprocess.PIPE, text=True,
                    env=self.emulator.environment(),
                )  # fmt: skip
            self._check(done)
            return parse_outputs((folder / "outputs").read_bytes(), self.manifest.outputs)

    def _link(self, text: str, folder: Path) -> Path:
        module = parse_ir(text)
        module.triple = self._isa.triple
        code = emit_object(module, self._isa.baseline)
        return self.emulator.link(code, self._library, self._isa, folder)

    def _check(self, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode == 0:
            return
        code = done.returncode - self.emulator.calls.first_error
        if 0 < code < len(ERRORS):
            kind, meaning = ERRORS[code]
            if kind == "SHAPE":
                raise ShapeError(f"the inputs do not fit together: {meaning}")
            raise Error(f"the compiled program reports an error: {meaning}")
        complaint = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise UnsupportedError(
            f"{self.emulator.program} does not run the library: {complaint}",
            hint="an older one lacks instructions of newer processors; update it, or compile for "
            f"cpu:{self.emulator.plain}",
        )
